import type { Caller } from "../access/actor.ts";
import { invalidField, validate } from "../http/validate.ts";
import type { InTurn } from "../turns.ts";
import { CHANGED_MAX } from "./change-many.ts";
import { listQuery, timeout } from "./list.ts";
import type { FoundIds, IdScope, LinkFilter, LinkStore } from "./types.ts";

// The list offers to select as many as one change may have, and says “of 1,000+” above that.
const COUNTED_MAX = CHANGED_MAX;
// The count is beside a page of 25 links, which are often found among the newest ones. Without a limit, a rare text would
// be searched for in all links. The search compares as many in one to three pieces, each of some milliseconds.
const COMPARED_MAX = 10_000;

const filterQuery = listQuery.pick({ search: true, tag: true, archived: true });

/** How many links match a filter, or at least match. */
export type LinkCount = { links: number; isExact: boolean };

/** Creates what looks at all links that match a filter instead of a page of them. Searches wait for their turns. */
export function createMatches(store: Pick<LinkStore, "listIds">, reads: InTurn) {
  async function find(
    caller: Caller,
    query: unknown,
    limit: number,
    { createdBefore, ...scope }: IdScope & Pick<LinkFilter, "createdBefore">,
  ): Promise<FoundIds> {
    const filter: LinkFilter = { ...validate(filterQuery, query), createdBefore };
    const { organizationId } = caller;
    const found = await reads(organizationId, () => store.listIds(organizationId, filter, limit, scope));
    if (found === "timeout") throw timeout("created_at");
    return found;
  }

  return {
    /** Counts up to 1,000 links that match, among the 10,000 or so newest ones. */
    async count(caller: Caller, query: unknown): Promise<LinkCount> {
      const scope = { maxCompared: COMPARED_MAX };
      const { ids, isComplete } = await find(caller, query, COUNTED_MAX + 1, scope);
      return {
        links: Math.min(ids.length, COUNTED_MAX),
        isExact: isComplete && ids.length <= COUNTED_MAX,
      };
    },

    /**
     * Returns the ids of all links that match and existed at a time, in epoch milliseconds, newest first.
     * @throws Problem 422 `invalid_all` for more than 1,000
     */
    async findAll(caller: Caller, query: unknown, createdUntil: number): Promise<string[]> {
      const { ids } = await find(caller, query, CHANGED_MAX + 1, { createdBefore: createdUntil + 1 });
      if (ids.length > CHANGED_MAX)
        throw invalidField("all", `must match at most ${CHANGED_MAX.toLocaleString("en")} links`);
      return ids;
    },
  };
}
