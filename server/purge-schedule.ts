import type { Storage } from "../adapters/index.ts";
import type { Log } from "./log.ts";

const EVERY_MS = 60_000;
// What expired while nothing ran is not left lying for long; the start itself comes first.
const FIRST_AFTER_MS = 5_000;

/** Removes expired rows in the background. A stop waits for the current batch. */
export function startSweeper(storage: Storage, log: Log): { stop(): Promise<void> } {
  const stopping = new AbortController();
  let running = Promise.resolve();
  const sweep = () => {
    running = running.then(async () => {
      try {
        log.debug({ deleted: await storage.sweep(stopping.signal) }, "swept");
      } catch (error) {
        log.warn({ err: error }, "the sweep failed; it goes on later");
      }
    });
  };
  const first = setTimeout(sweep, FIRST_AFTER_MS).unref();
  const timer = setInterval(sweep, EVERY_MS).unref();
  return {
    stop() {
      clearTimeout(first);
      clearInterval(timer);
      stopping.abort();
      return running;
    },
  };
}
