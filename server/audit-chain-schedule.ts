import type { Storage } from "../adapters/index.ts";
import type { Log } from "./log.ts";

const EVERY_MS = 1000;

/** Chains new entries of the audit logs in the background. `stop` waits for the current batch. */
export function startAuditChainSchedule(storage: Storage, log: Log): { stop(): Promise<void> } {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  async function append(): Promise<void> {
    try {
      await storage.auditChain.appendAll(stopping.signal);
    } catch (error) {
      log.warn({ err: error }, "chaining the audit log failed, will retry");
    }
    running = undefined;
  }
  const timer = setInterval(() => {
    running ??= append();
  }, EVERY_MS).unref();
  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await running;
      await storage.auditChain.release().catch(() => {}); // another process continues once the lease has expired
    },
  };
}
