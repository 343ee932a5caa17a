const BAR_LENGTH = 20;
const STATUS_MS = 100;
// Before, the time left would be a guess.
const ESTIMATE_SECONDS = 2;
let isShown = false;

/** Shows a line on a terminal in place of the one before; an empty one ends it. */
export function printStatus(text: string): void {
  if (!process.stderr.isTTY || (text === "" && !isShown)) return;
  // A line that wraps could not be replaced. A terminal that doesn't know its width reports 0.
  const width = process.stderr.columns || Number.POSITIVE_INFINITY;
  process.stderr.write(`\r\u001b[K${text.slice(0, width)}`);
  isShown = text !== "";
}

/**
 * Returns a function that shows on a terminal how many units are done, the speed, and the time left if the share of all
 * work is known, from 0 to 1. The first call reports what an earlier run has done.
 */
export function createProgress(unit: string): (done: number, share?: number) => void {
  let first: { done: number; share: number; at: number } | undefined;
  let shownAt = Number.NEGATIVE_INFINITY;
  return (done, share) => {
    const now = performance.now();
    first ??= { done, share: share ?? 0, at: now };
    if (now < shownAt + STATUS_MS) return;
    shownAt = now;
    const seconds = (now - first.at) / 1000;
    const parts = [`${number(done)} ${unit}`];
    if (done > first.done) parts.push(`${number((done - first.done) / seconds)} per second`);
    if (share === undefined) return printStatus(parts.join(", "));
    if (seconds >= ESTIMATE_SECONDS && share > first.share)
      parts.push(`${time((seconds * (1 - share)) / (share - first.share))} left`);
    const bar = "#".repeat(Math.round(share * BAR_LENGTH)).padEnd(BAR_LENGTH, ".");
    printStatus([`[${bar}] ${Math.floor(share * 100)}%`, ...parts].join(", "));
  };
}

/** The share for `createProgress`: there may be more to do than was counted before. */
export function shareOf(done: number, total: number): number {
  return Math.min(1, done / Math.max(1, total));
}

/** Calls the function when the user presses Ctrl-C, before the signal ends the process. */
export async function untilInterrupted<T>(work: Promise<T>, onInterrupt: () => void): Promise<T> {
  const interrupt = () => {
    onInterrupt();
    process.kill(process.pid, "SIGINT"); // without a listener, it has its usual effect
  };
  process.once("SIGINT", interrupt);
  return work.finally(() => process.off("SIGINT", interrupt));
}

export function number(value: number): string {
  return Math.round(value).toLocaleString("en");
}

function time(seconds: number): string {
  const left = Math.ceil(seconds);
  return `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
}
