import type { Log } from "../log.ts";

/** A process that is running. */
export type RunningProcess = {
  close(): Promise<void>;
  /** Resolves if it has to stop by itself, and exit with 1. */
  failed?: Promise<void>;
  /** Replaces the workers, if there are any, one after the other. */
  restart?(): Promise<void>;
  /** Returns what `close` is still waiting for. */
  waitingFor(): string[];
};

// Under npm, Ctrl-C arrives twice: from the terminal and from npm.
const ONE_SIGNAL_MS = 500;

/**
 * Stops on SIGTERM or SIGINT and exits with 0. On a second signal, or if stopping takes longer than `limitMs`, exits
 * immediately with 1, so that an operator never has to kill the process. On SIGHUP, restarts the workers; a process
 * without workers, or whose terminal was closed, stops instead. A process that has failed stops in the same way, and
 * exits with 1.
 */
export function followSignals(starting: Promise<RunningProcess>, log: Log, limitMs: number): void {
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
