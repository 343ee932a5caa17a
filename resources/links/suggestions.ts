import type { Caller } from "../access/actor.ts";
import type { Enqueue } from "../work-queue.ts";
import { isSlug } from "./rules.ts";
import type { LinkStore } from "./types.ts";

// Few organizations use a tag that none of these has, and they are read in milliseconds.
const LINKS_WITH_SUGGESTED_TAGS = 1000;
const SUGGESTED_TAGS = 100;

/** What a person or a model is offered while typing. */
export function createSuggestions(store: LinkStore, enqueue: Enqueue) {
  return {
    /** Suggests slugs with a prefix, those of the newest links first. Resolves to none if the search takes too long. */
    async suggestSlugs({ organizationId }: Caller, prefix: string, count: number): Promise<string[]> {
      if (prefix !== "" && !isSlug(prefix.replace(/\/$/, ""))) return [];
      const filter = prefix === "" ? {} : { slugPrefix: prefix };
      const found = await enqueue(organizationId, () => store.list(organizationId, filter, count));
      return found === "timeout" ? [] : found.map(({ slug }) => slug);
    },
    /** Suggests tags with a prefix, in either case: those of the newest links, most used first. */
    async suggestTags({ organizationId }: Caller, prefix = "", count = SUGGESTED_TAGS): Promise<string[]> {
      const counts = new Map<string, number>();
      for (const tag of (await store.newestTags(organizationId, LINKS_WITH_SUGGESTED_TAGS)).flat()) {
        counts.set(tag, (counts.get(tag) ?? 0) + 1);
      }
      const mostUsed = [...counts].sort(([, one], [, other]) => other - one);
      return mostUsed
        .map(([tag]) => tag)
        .filter((tag) => tag.toLowerCase().startsWith(prefix.toLowerCase()))
        .slice(0, count);
    },
  };
}
