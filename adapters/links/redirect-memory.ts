import { LRUCache } from "lru-cache";
import { StorageUnavailable } from "../database/retry.ts";
import type { Outbox } from "../events/outbox.ts";
import { CACHE_BYTES, type CurrentReads, type Resolved, sizeOf } from "./redirect-cache.ts";

// How long a read result is used during an outage of the database.
const KEPT_MS = 10 * 60_000;
// About 32,000 links. Of 100,000 links that are followed as 1/n, these serve more than 80% of the redirects.
const MEMORY_BYTES = 2 * CACHE_BYTES;
// As for `/readyz`: a database that takes longer serves no requests.
const ANSWER_MS = 2000;
// In an outage: how often a database that refuses is asked, and how long a redirect waits for one that says nothing.
const PROBE_MS = 200;
// More in 10 minutes than most processes make.
const CHANGES_MAX = 50_000;

type Item = { value: NonNullable<Resolved>; readAt: number };

/** While the database can't be reached, answers with what was read before. Its first answer ends that. */
export function rememberReads(reads: CurrentReads, { onChange }: Pick<Outbox, "onChange">): CurrentReads {
  const items = new LRUCache<string, Item>({
    maxSize: MEMORY_BYTES,
    sizeCalculation: ({ value }) => sizeOf(value),
  });
  // When this process changed links, domains and organizations. What was read before that is out of date.
  const changes = new LRUCache<string, number>({
    max: CHANGES_MAX,
    noDisposeOnSet: true,
    dispose: (at) => at > Date.now() - KEPT_MS && items.clear(),
  });
  // When to ask the database again, in an outage, and how long to wait for its answer.
  let [answeredAt, nextProbe, patience] = [0, 0, ANSWER_MS];

  onChange((subjects) => {
    for (const subject of subjects) changes.set(subject, Date.now());
  });

  const isUsable = ({ value: { id, organizationId }, readAt }: Item) =>
    readAt > Math.max(Date.now() - KEPT_MS, changes.get(id) ?? 0, changes.get(organizationId) ?? 0);

  /** `kind` keeps the keys of different reads apart. */
  const remember = <Value extends Resolved>(kind: string, find: (key: string) => Promise<Value>) => {
    async function ask(key: string): Promise<Value> {
      const readAt = Date.now();
      const value = await find(key);
      [answeredAt, nextProbe, patience] = [performance.now(), 0, ANSWER_MS];
      if (value && !isLimited(value)) items.set(kind + key, { value, readAt });
      else items.delete(kind + key);
      return value;
    }

    return async (key: string): Promise<Value> => {
      const item = items.get(kind + key);
      if (!item || !isUsable(item)) return ask(key);
      const now = performance.now();
      if (now < nextProbe) return item.value as Value;
      if (nextProbe > 0) nextProbe = now + ANSWER_MS; // one asks at a time
      const { promise, resolve, reject } = Promise.withResolvers<Value>();
      const late = setTimeout(() => useMemory(ANSWER_MS, PROBE_MS), patience);
      ask(key)
        .then(resolve, (error) => {
          if (error instanceof StorageUnavailable) useMemory(PROBE_MS);
          reject(error);
        })
        .finally(() => clearTimeout(late));
      return promise;

      /** Begins or prolongs an outage, unless something was answered meanwhile. */
      function useMemory(pause: number, nextPatience = patience): void {
        if (answeredAt > now) return;
        [nextProbe, patience] = [performance.now() + pause, nextPatience];
        resolve(item?.value as Value);
      }
    };
  };

  return {
    resolveLink: remember("", reads.resolveLink),
    resolveDomain: remember("host ", reads.resolveDomain),
  };
}

/** A limit of clicks and a password have to be looked up. */
const isLimited = (value: Item["value"]) =>
  "maxClicks" in value && (value.maxClicks !== null || value.hasPassword);
