import { LRUCache } from "lru-cache";

/** Called if the use could not be stored, which fails no request. */
export type ReportError = (error: unknown) => void;

// The minimum time between two updates of a last use: precise enough for display.
const INTERVAL_MS = 60_000;
const MAX_TRACKED = 10_000;

/** Returns a function that stores when something was last used, at most once a minute for each id. */
export function createUseRecorder(
  store: (id: string, at: number) => Promise<void>,
  onError: ReportError,
): (id: string) => void {
  const recorded = new LRUCache<string, number>({ max: MAX_TRACKED });
  return (id) => {
    const now = Date.now();
    if (now < (recorded.get(id) ?? 0) + INTERVAL_MS) return;
    recorded.set(id, now);
    store(id, now).catch(onError);
  };
}
