import type { Storage } from "../../adapters/index.ts";
import type { Log } from "../log.ts";

const CHAIN_EVERY_MS = 1000;
const PURGE_EVERY_MS = 60_000;
// Soon after the start, because rows may have expired while the server was down, but not during it.
const FIRST_PURGE_MS = 5000;

/** `stop` ends the work after the current batch. */
export type Schedule = { stop(): Promise<void> };

export function schedulePurge(storage: Storage, log: Log): Schedule {
  async function purge(signal: AbortSignal) {
    log.debug({ deleted: await storage.purgeExpired(signal) }, "purged expired rows");
  }
  return schedule(FIRST_PURGE_MS, PURGE_EVERY_MS, purge, (error) =>
    log.warn({ err: error }, "purge failed, will retry"),
  );
}

export function scheduleAuditChain({ auditChain }: Storage, log: Log): Schedule {
  const { stop } = schedule(CHAIN_EVERY_MS, CHAIN_EVERY_MS, auditChain.appendAll, (error) =>
    log.warn({ err: error }, "chaining the audit log failed, will retry"),
  );
  return {
    async stop() {
      await stop();
      await auditChain.release().catch(() => {}); // another process continues once the lease has expired
    },
  };
}

/** Not while the work is still running. */
function schedule(
  firstAfterMs: number,
  everyMs: number,
  run: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): Schedule {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  const start = () => {
    running ??= run(stopping.signal)
      .catch(onError)
      .finally(() => {
        running = undefined;
      });
  };
  const first = setTimeout(start, firstAfterMs).unref();
  const timer = setInterval(start, everyMs).unref();
  return {
    async stop() {
      clearTimeout(first);
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}
