import type { Caller } from "../access/actor.ts";
import { type Precondition, preconditionFailed } from "../http/etag.ts";
import { Problem, retryLater } from "../http/problem.ts";
import { invalidField } from "../http/validate.ts";
import { throwQuotaProblem } from "../plans.ts";
import { isReserved, type ReservedNames, randomSlug } from "./rules.ts";
import { linkTag } from "./schema.ts";
import {
  LINK_DEFAULTS,
  type Link,
  type LinkChanges,
  type LinkConflict,
  type LinkFields,
  type LinkStore,
} from "./types.ts";

const DOMAIN_RULE = "must be a verified domain of your organization, or the host of this service";
// If this many random slugs are taken, the cause is something other than chance.
const MAX_SLUG_ATTEMPTS = 5;

/** Creates a link, under a random slug if it has none. Resolves to the conflict with another link. */
export async function tryCreateLink(
  store: LinkStore,
  caller: Caller,
  given: LinkChanges,
  reserved: ReservedNames,
): Promise<Link | LinkConflict> {
  const { organizationId, actor, linkId, defaultDomain } = caller;
  const id = linkId?.(0);
  const {
    domain = defaultDomain === undefined ? await store.findDefaultDomain(organizationId) : defaultDomain,
  } = given;
  assertAllowedSlug({ ...given, domain }, reserved);
  for (let attempt = 0; attempt < MAX_SLUG_ATTEMPTS; attempt++) {
    const fields = { ...LINK_DEFAULTS, ...given, domain, slug: given.slug ?? randomSlug() } as LinkFields;
    const result = await store.create(organizationId, actor, fields, id).catch(throwQuotaProblem);
    // The default is used once it is verified.
    if ("missing" in result && given.domain === undefined)
      return tryCreateLink(store, caller, { ...given, domain: null }, reserved);
    if (!("taken" in result)) return result;
    // A retried request conflicts with the link that its first attempt created.
    const existing = id && (await store.find(organizationId, id));
    if (existing) return existing;
    if (given.slug || result.taken !== "slug") return result;
  }
  throw new Error("no free slug was found");
}

/** What is wrong with a slug that the service needs on its own host. */
export const IS_RESERVED = "is reserved";

/** @throws Problem 422 for a slug that the service needs on its own host */
export function assertAllowedSlug({ slug, domain }: LinkChanges, reserved: ReservedNames): void {
  if (domain === null && slug && isReserved(slug, reserved)) throw invalidField("slug", IS_RESERVED);
}

// Each lost race is one that another request won. A link that appears and disappears this often is being fought over.
const MAX_RACES = 25;
const RETRY_AFTER_S = 1;

type UpsertResult = { link: Link; isNew: boolean };

/** Creates the link with an external id, or replaces it. @throws Problem 409, 412, or 503 if it loses every race */
export async function upsertLink(
  store: LinkStore,
  caller: Caller,
  externalId: string,
  given: LinkChanges,
  { reserved, precondition }: { reserved: ReservedNames; precondition?: Precondition | undefined },
): Promise<UpsertResult> {
  const { organizationId, actor } = caller;
  const find = () => store.findByExternalId(organizationId, externalId);

  /** Resolves to `undefined` if another request created the link first. */
  async function insert(): Promise<UpsertResult | undefined> {
    const result = await tryCreateLink(store, caller, given, reserved);
    // The winner of a race has the same slug as well, and databases differ in which of the two conflicts they report.
    if ("taken" in result && (result.taken === "external_id" || (await find()))) return undefined;
    return { link: assertNoConflict(result), isNew: true };
  }

  /** Resolves to `undefined` if another request changed or deleted the link first. */
  async function replace(link: Link): Promise<UpsertResult | undefined> {
    assertAllowedSlug({ ...link, ...given }, reserved);
    // No client can read the password to send it again: one that omits it must not remove the protection.
    const { archived, passwordHash, domain, ...cleared } = LINK_DEFAULTS;
    const fields = { ...cleared, ...given };
    const version = precondition && link.version;
    const updated = await store
      .update(organizationId, link.id, fields, actor, version)
      .catch(throwQuotaProblem);
    const result = assertEnabled(updated);
    if (!result || result === "stale") return undefined;
    return { link: assertNoConflict(result), isNew: false };
  }

  for (let attempt = 0; attempt < MAX_RACES; attempt++) {
    const existing = await find();
    // RFC 9110 §13.1.1: If-Match is false for a resource that doesn't exist, even with "*".
    if (precondition && !(existing && precondition(linkTag(existing)))) throw preconditionFailed("link");
    const result = await (existing ? replace(existing) : insert());
    if (result) return result;
  }
  const detail = "Other requests keep creating and deleting this link. Try again.";
  throw retryLater(503, "temporarily_unavailable", detail, RETRY_AFTER_S);
}

export function assertEnabled<T>(result: T | "disabled"): T {
  if (result !== "disabled") return result;
  const detail = "The operator of this service disabled the link, so it can't be changed. You can delete it.";
  throw new Problem(409, "link_disabled", detail);
}

export function assertNoConflict(result: Link | LinkConflict): Link {
  if ("taken" in result || "missing" in result) throw conflictProblem(result);
  return result;
}

export function conflictProblem(conflict: LinkConflict): Problem {
  if ("missing" in conflict) return invalidField("domain", DOMAIN_RULE);
  const { taken: field } = conflict;
  const message = field === "slug" ? "is already taken" : "is already used by another link";
  return new Problem(409, `${field}_taken`, `${field} ${message}.`, { errors: [{ field, message }] });
}
