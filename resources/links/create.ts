import type { Caller } from "../access/actor.ts";
import { withQuotaProblems } from "../http/quota.ts";
import { randomSlug } from "./rules.ts";
import { LINK_DEFAULTS, type LinkInput, toFields } from "./schema.ts";
import type { Link, LinkConflict, LinkFields, LinkStore } from "./types.ts";

// If this many random slugs are taken, the cause is something other than chance.
const MAX_SLUG_ATTEMPTS = 5;

/** Creates a link under its slug, or under a random one if it has none. Resolves to the conflict with another link. */
export async function tryCreateLink(
  store: LinkStore,
  { organizationId, actor, linkId }: Caller,
  input: LinkInput,
): Promise<Link | LinkConflict> {
  const given = toFields(input);
  const id = linkId?.(0);
  for (let attempt = 0; attempt < MAX_SLUG_ATTEMPTS; attempt++) {
    const fields = { ...LINK_DEFAULTS, ...given, slug: given.slug ?? randomSlug() } as LinkFields;
    const result = await withQuotaProblems(store.create(organizationId, actor, fields, id));
    if (!("taken" in result)) return result;
    // A retried request conflicts with the link that its first attempt created.
    const existing = id && (await store.find(organizationId, id));
    if (existing) return existing;
    if (given.slug || result.taken !== "slug") return result;
  }
  throw new Error("no free slug was found");
}
