import { LRUCache } from "lru-cache";
import type { ResolvedLink } from "../../resources/links/types.ts";

/** Merges the click events of a link, so that each process records at most one per second. */
export type ClickCoalescer<Event> = {
  /** Returns the events to record now, at most one per link, and keeps the others until their link may have another one. */
  take(events: Event[]): Event[];
  /** Releases all events that were kept, and keeps none from now on. */
  end(): void;
};

type CoalescerOptions<Event> = {
  merge(first: Event, later: Event): Event;
  /** Receives an event that was kept, whose clicks are counted by now. */
  release(event: Event): void;
};

// Matches the smallest unit in which integrators would look at clicks, and a person doesn't notice the delay.
const WINDOW_MS = 1000;
// Limits memory. With more links clicked in a second, some have more than one event.
const MAX_LINKS = 10_000;

/** Creates the coalescer of one process. The first click of a link is released without delay. */
export function createClickCoalescer<Event extends { link: ResolvedLink; uncounted: number }>({
  merge,
  release,
}: CoalescerOptions<Event>): ClickCoalescer<Event> {
  const recent = new LRUCache<string, true>({ max: MAX_LINKS, ttl: WINDOW_MS });
  let kept = new Map<string, Event>();
  let timer: NodeJS.Timeout | undefined;
  let hasEnded = false;

  /** Releases what was kept. Events of links that had another event meanwhile are kept again. */
  function releaseAll() {
    clearTimeout(timer);
    timer = undefined;
    const events = kept;
    kept = new Map();
    for (const event of events.values()) release(event);
  }

  return {
    take(events) {
      const ready = new Map<string, Event>();
      for (const event of events) {
        const { id } = event.link;
        const isRecent = recent.has(id) && kept.size < MAX_LINKS && !hasEnded;
        // Kept clicks were counted in their own batch.
        const target = isRecent ? kept : ready;
        const added = isRecent ? { ...event, uncounted: 0 } : event;
        const first = target.get(id);
        target.set(id, first ? merge(first, added) : added);
      }
      for (const id of ready.keys()) recent.set(id, true);
      if (kept.size > 0) timer ??= setTimeout(releaseAll, WINDOW_MS).unref();
      return [...ready.values()];
    },

    end() {
      hasEnded = true;
      releaseAll();
    },
  };
}
