// More than any campaign has. Headers can be made up: without an end, whoever follows a link could fill the table.
const REFERRERS_PER_LINK = 100;
// Of so many links the referrers are remembered, those first that were met last.
const MAX_LINKS = 10_000;

/** What further referrers of a link are counted as. */
export const OTHER = "(other)";

/** Lets a number of different referrers per link and day through; any further one becomes `OTHER`. */
export type ReferrerLimit = (linkId: string, day: number, referrer: string) => string;

/** Makes the limit of one process. */
export function createReferrerLimit(): ReferrerLimit {
  let today = 0;
  const known = new Map<string, Set<string>>();
  return (linkId, day, referrer) => {
    if (referrer === "") return referrer;
    if (day !== today) known.clear();
    today = day;
    const referrers = known.get(linkId) ?? new Set();
    if (referrers.has(referrer)) return referrer;
    if (referrers.size >= REFERRERS_PER_LINK) return OTHER;
    referrers.add(referrer);
    if (known.size >= MAX_LINKS && !known.has(linkId)) known.delete(known.keys().next().value as string);
    known.set(linkId, referrers);
    return referrer;
  };
}
