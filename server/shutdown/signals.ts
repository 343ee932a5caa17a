import type { Log } from "./log.ts";

/** A process that is up. */
export type Running = {
  close(): Promise<void>;
  /** What `close` still waits for. */
  waitingFor(): string[];
};

// Under npm, Ctrl-C arrives twice: from the terminal and from npm.
const ONE_SIGNAL_MS = 500;

/**
 * Stops on SIGTERM or SIGINT, and exits with 0. A second signal exits without waiting for anything, and so does a stop
 * that takes longer than `limitMs`, both with 1: an operator never has to kill the process.
 */
export function stopOnSignals(starting: Promise<Running>, log: Log, limitMs: number): void {
  let running: Running | undefined;
  let signaledAt: number | undefined;

  function onSignal() {
    if (signaledAt === undefined) {
      signaledAt = performance.now();
      setTimeout(giveUp, limitMs);
      void stop();
    } else if (performance.now() > signaledAt + ONE_SIGNAL_MS) process.exit(1);
  }

  async function stop() {
    try {
      running = await starting;
      await running.close();
      process.exit(0);
    } catch (error) {
      log.error({ err: error }, "the stop failed");
      process.exit(1);
    }
  }

  function giveUp() {
    const waiting_for = running?.waitingFor() ?? ["the start"];
    log.error({ waiting_for }, "the stop took too long");
    process.exit(1);
  }

  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}
