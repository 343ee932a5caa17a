import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { ResolvedLink } from "../../resources/links/types.ts";
import { StorageUnavailable } from "../database/retry.ts";
import type { Outbox } from "../events/outbox.ts";
import { CACHE_BYTES, type CurrentReads, type Resolved, sizeOf } from "./redirect-cache.ts";

// How long a read result is used during an outage of the database.
const KEPT_MS = 10 * 60_000;
// About 32,000 links. Of 100,000 links that are followed as 1/n, these serve more than 80% of the redirects.
const MEMORY_BYTES = 2 * CACHE_BYTES;
// As for `/readyz`: a database that takes longer serves no requests.
const ANSWER_MS = 2000;
const PROBE_MS = 200;

type Item = { value: NonNullable<Resolved>; readAt: number; size: number };

/** While the database can't be reached, answers with what was read before, and one read at a time asks for its return. */
export function rememberReads(reads: CurrentReads, { onChange }: Pick<Outbox, "onChange">) {
  // By the ID of a link or domain, the name of its item.
  const names = new Map<string, string>();
  const items = new LRUCache<string, Item>({
    maxSize: MEMORY_BYTES,
    sizeCalculation: ({ size }) => size,
    dispose: ({ value }) => void names.delete(value.id),
  });
  let [changes, answers, fromMemory] = [0, 0, 0];
  let outage: Promise<void> | undefined;

  // What was changed here is known to be out of date.
  onChange((subjects) => {
    changes++;
    for (const subject of subjects) {
      // A suspension concerns all that an organization has.
      if (subject.startsWith("org_")) items.clear();
      items.delete(names.get(subject) ?? "");
    }
  });

  function keep(name: string, value: NonNullable<Resolved>, known: Item | undefined): void {
    const item = { value, readAt: Date.now(), size: sizeOf(value) };
    if (known?.value.id === value.id && known.size === item.size) Object.assign(known, item);
    else {
      items.set(name, item);
      names.set(value.id, name);
    }
  }

  /** If nothing was answered meanwhile, an outage begins: it asks until the database answers. */
  async function probe(before: number): Promise<void> {
    do {
      await pause(PROBE_MS);
      // Another connection may get an answer sooner than one that waits.
      await Promise.race([ask(reads.resolveLink, "").catch(() => {}), pause(ANSWER_MS)]);
    } while (answers === before);
  }

  const beginOutage = (before: number) => {
    if (answers === before) outage ??= probe(before);
  };

  async function ask<Value>(find: (key: string) => Promise<Value>, key: string): Promise<Value> {
    const before = answers;
    let isOutage = false;
    try {
      return await find(key);
    } catch (error) {
      isOutage = error instanceof StorageUnavailable;
      throw error;
    } finally {
      if (isOutage) beginOutage(before);
      else {
        answers++;
        outage = undefined;
      }
    }
  }

  /** `kind` keeps the keys of different reads apart. */
  const remember = <Value extends Resolved>(
    kind: string,
    find: (key: string) => Promise<Value>,
    isKept: (value: NonNullable<Value>) => boolean,
  ) => {
    async function read(key: string, known?: Item): Promise<Value> {
      const before = changes;
      const value = await ask(find, key);
      if (!value || !isKept(value)) items.delete(kind + key);
      else if (changes === before) keep(kind + key, value, known);
      return value;
    }

    function use({ value }: Item): Value {
      if (kind === LINK) fromMemory++;
      return value as Value;
    }

    return async (key: string): Promise<Value> => {
      const known = items.get(kind + key);
      const item = known && known.readAt > Date.now() - KEPT_MS ? known : undefined;
      if (outage && item) return use(item);
      if (outage) await Promise.race([outage, sleep(ANSWER_MS)]);
      if (outage) throw new StorageUnavailable(new Error("the database does not answer"));
      if (!item) return read(key);
      const { promise, resolve, reject } = Promise.withResolvers<Value>();
      const before = answers;
      const late = setTimeout(() => {
        beginOutage(before);
        if (outage) resolve(use(item));
      }, ANSWER_MS);
      read(key, item)
        .then(resolve, (error) => (outage ? resolve(use(item)) : reject(error)))
        .finally(() => clearTimeout(late));
      return promise;
    };
  };

  return {
    // A limit of clicks and a password have to be looked up.
    resolveLink: remember(LINK, reads.resolveLink, isUnlimited),
    resolveDomain: remember("host ", reads.resolveDomain, () => true),
    /** How many times a link was resolved without the database. */
    linksFromMemory: () => fromMemory,
  };
}

const LINK = "";

const isUnlimited = ({ maxClicks, hasPassword }: ResolvedLink) => maxClicks === null && !hasPassword;

const pause = (ms: number) => sleep(ms, undefined, { ref: false });
