import type { Log } from "../log.ts";

export type RunningProcess = {
  close(): Promise<void>;
  failed?: Promise<void>;
  restart?(): Promise<void>;
  waitingFor(): string[];
};

// Under npm, Ctrl-C arrives twice: from the terminal and from npm.
const ONE_SIGNAL_MS = 500;

/**
 * Stops on SIGTERM or SIGINT; a second signal, or `limitMs`, exits immediately with 1. SIGHUP restarts the workers;
 * without workers, or after the terminal was closed, it stops the process.
 */
export function stopOnSignals(starting: Promise<RunningProcess>, log: Log, limitMs: number): void {
  let running: RunningProcess | undefined;
  let signaledAt: number | undefined;
  let exitCode = 0;

  function onSignal() {
    if (signaledAt === undefined) {
      signaledAt = performance.now();
      setTimeout(exitLate, limitMs);
      void stop();
    } else if (performance.now() > signaledAt + ONE_SIGNAL_MS) process.exit(1);
  }

  async function stop() {
    try {
      running = await starting;
      await running.close();
      process.exit(exitCode);
    } catch (error) {
      log.error({ err: error }, "failed to stop");
      process.exit(1);
    }
  }

  async function onFailure() {
    const { failed } = await starting;
    if (!failed) return;
    await failed;
    exitCode = 1;
    if (signaledAt === undefined) onSignal();
  }

  async function onHangup() {
    const restart = isInTerminal() ? undefined : (await starting).restart;
    if (!restart) return onSignal();
    if (signaledAt === undefined) await restart();
  }

  function exitLate() {
    const waiting_for = running?.waitingFor() ?? ["start"];
    log.error({ waiting_for }, "took too long to stop");
    process.exit(1);
  }

  // A failed start is reported by the caller.
  onFailure().catch(() => {});
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("SIGHUP", () => void onHangup().catch(onSignal));
}

const isInTerminal = () => process.stdin.isTTY || process.stdout.isTTY;
