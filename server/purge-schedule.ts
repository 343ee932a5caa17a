import type { Storage } from "../adapters/index.ts";
import type { Log } from "./log.ts";

const EVERY_MS = 60_000;
// Soon after the start, because rows may have expired while the server was down, but not during it.
const FIRST_AFTER_MS = 5_000;

/** Deletes expired rows, finishes upgrades and indexes links in the background. `stop` waits for the current batch. */
export function startPurgeSchedule(storage: Storage, log: Log): { stop(): Promise<void> } {
  const stopping = new AbortController();
  let running = Promise.resolve();
  const purge = () => {
    running = running.then(async () => {
      try {
        log.debug({ deleted: await storage.purgeExpired(stopping.signal) }, "purged expired rows");
      } catch (error) {
        log.warn({ err: error }, "purge failed, will retry");
      }
      try {
        await storage.finishUpgrade();
      } catch (error) {
        log.warn({ err: error }, "finishing the upgrade failed, will retry");
      }
      if (stopping.signal.aborted) return;
      try {
        await storage.indexLinks();
      } catch (error) {
        log.warn({ err: error }, "finding links to index failed, will retry");
      }
    });
  };
  const first = setTimeout(purge, FIRST_AFTER_MS).unref();
  const timer = setInterval(purge, EVERY_MS).unref();
  return {
    stop() {
      clearTimeout(first);
      clearInterval(timer);
      stopping.abort();
      return running;
    },
  };
}
