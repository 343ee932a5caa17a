import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { ResolvedLink } from "../../resources/links/types.ts";
import { StorageUnavailable } from "../database/retry.ts";
import type { Outbox } from "../events/outbox.ts";
import { CACHE_BYTES, type CurrentReads, type Resolved, sizeOf } from "./redirect-cache.ts";

// How long what was read is used while the database doesn't answer.
const KEPT_MS = 10 * 60_000;
// About 32,000 links. Of 100,000 links that are followed as 1/n, these serve more than 80% of the redirects.
const MEMORY_BYTES = 2 * CACHE_BYTES;
// As for `/readyz`: a database that takes longer serves no requests.
const ANSWER_MS = 2000;
const TICK_MS = 250;
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
  let changes = 0;
  let answers = 0;
  let fromMemory = 0;
  let isAway = false;
  let probing: Promise<void> | undefined;
  // A timer for each read would take longer than the rest.
  let tick: Promise<typeof TICK> | undefined;

  // What was changed here is known to be out of date.
  onChange((subjects) => {
    changes++;
    for (const subject of subjects) {
      // A suspension concerns all that an organization has.
      if (subject.startsWith("org_")) items.clear();
      items.delete(names.get(subject) ?? "");
    }
  });

  function keep(name: string, value: NonNullable<Resolved>, item: Item | undefined): void {
    const size = sizeOf(value);
    if (item?.size === size && item.value.id === value.id) {
      item.value = value;
      item.readAt = Date.now();
    } else {
      items.set(name, { value, size, readAt: Date.now() });
      names.set(value.id, name);
    }
  }

  function findItem(name: string): Item | undefined {
    const item = items.get(name);
    return item && item.readAt > Date.now() - KEPT_MS ? item : undefined;
  }

  async function nextTick(): Promise<typeof TICK> {
    await sleep(TICK_MS, undefined, { ref: false });
    tick = undefined;
    return TICK;
  }

  /** `kind` keeps the keys of different reads apart. */
  const remember = <Value extends Resolved>(
    kind: string,
    find: (key: string) => Promise<Value>,
    isKept: (value: NonNullable<Value>) => boolean,
  ) => {
    async function ask(key: string, item?: Item): Promise<Value> {
      const name = kind + key;
      const [changesBefore, answersBefore] = [changes, answers];
      try {
        const value = await find(key);
        answers++;
        isAway = false;
        if (!value || !isKept(value)) items.delete(name);
        else if (changes === changesBefore) keep(name, value, item);
        return value;
      } catch (error) {
        if (isOutage(error) && answers === answersBefore) probe(() => ask(key));
        throw error;
      }
    }

    /** Doesn't wait for long if the item is known. */
    async function askFor(key: string, item: Item): Promise<Value> {
      const [start, answersBefore] = [performance.now(), answers];
      const asked = ask(key, item);
      try {
        for (;;) {
          tick ??= nextTick();
          const found = await Promise.race([asked, tick]);
          if (found !== TICK) return found;
          if (performance.now() - start < ANSWER_MS) continue;
          if (answers > answersBefore) return asked;
          probe(() => ask(key));
          break;
        }
      } catch (error) {
        if (!isOutage(error) || !isAway) throw error;
      }
      return use(item);
    }

    function use(item: Item): Value {
      if (kind === LINK) fromMemory++;
      return item.value as Value;
    }

    return async (key: string): Promise<Value> => {
      const item = findItem(kind + key);
      if (isAway && item) return use(item);
      if (isAway) await Promise.race([probing, sleep(ANSWER_MS)]);
      if (isAway) throw new StorageUnavailable(new Error("the database does not answer"));
      return item ? askFor(key, item) : ask(key);
    };
  };

  /** Asks until the database answers. */
  function probe(ask: () => Promise<unknown>): void {
    isAway = true;
    probing ??= askAgain(ask).finally(() => {
      isAway = false;
      probing = undefined;
    });
  }

  async function askAgain(ask: () => Promise<unknown>): Promise<void> {
    do await sleep(PROBE_MS, undefined, { ref: false });
    while (isAway && (await Promise.race([ask().then(() => false, isOutage), late()])));
  }

  return {
    // A limit of clicks and a password have to be looked up.
    resolveLink: remember(LINK, reads.resolveLink, isUnlimited),
    resolveDomain: remember("host ", reads.resolveDomain, () => true),
    /** How many times a link was resolved without the database. */
    linksFromMemory: () => fromMemory,
  };
}

const LINK = "";
const TICK = Symbol("tick");

function isUnlimited({ maxClicks, hasPassword }: ResolvedLink): boolean {
  return maxClicks === null && !hasPassword;
}

/** Another connection may get an answer sooner. */
function late(): Promise<boolean> {
  return sleep(ANSWER_MS, true, { ref: false });
}

function isOutage(error: unknown): boolean {
  return error instanceof StorageUnavailable;
}
