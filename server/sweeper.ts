import type { Storage } from "../adapters/index.ts";
import type { Log } from "./log.ts";

const EVERY_MS = 60_000;

/** Removes expired rows in the background until it is stopped. */
export function startSweeper(storage: Storage, log: Log): { stop(): Promise<void> } {
  let running = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(async () => {
      try {
        log.debug({ deleted: await storage.sweep() }, "swept");
      } catch (error) {
        log.warn({ err: error }, "the sweep failed; it goes on later");
      }
    });
  }, EVERY_MS).unref();
  return {
    stop() {
      clearInterval(timer);
      return running;
    },
  };
}
