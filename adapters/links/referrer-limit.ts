import { LRUCache } from "lru-cache";

// More than any campaign has. Headers can be forged, so without a limit visitors could fill the table.
const REFERRERS_PER_LINK = 100;
// The number of links whose referrers are kept in memory. The least recently used ones are evicted first.
const MAX_LINKS = 10_000;

/** The name under which all further referrers of a link are counted. */
export const OTHER = "(other)";

/** Returns the referrer, or `OTHER` once a link has had the maximum number of different referrers on that day. */
export type ReferrerLimit = (linkId: string, day: number, referrer: string) => string;

/** Creates the referrer limit of one process. */
export function createReferrerLimit(): ReferrerLimit {
  let currentDay = 0;
  const referrersByLink = new LRUCache<string, Set<string>>({ max: MAX_LINKS });
  return (linkId, day, referrer) => {
    if (referrer === "") return referrer;
    if (day !== currentDay) referrersByLink.clear();
    currentDay = day;
    const referrers = referrersByLink.get(linkId) ?? new Set();
    if (referrers.has(referrer)) return referrer;
    if (referrers.size >= REFERRERS_PER_LINK) return OTHER;
    referrers.add(referrer);
    referrersByLink.set(linkId, referrers);
    return referrer;
  };
}
