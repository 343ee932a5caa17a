import type { Caller } from "../access/actor.ts";
import type { Precondition } from "../http/precondition.ts";
import { withQuotaProblems } from "../http/quota.ts";
import { tryCreateLink } from "./create.ts";
import { assertEnabled, assertNoConflict, preconditionFailed, upsertContention } from "./problems.ts";
import { LINK_DEFAULTS, type LinkInput, toFields } from "./schema.ts";
import type { Link, LinkStore } from "./types.ts";

export type UpsertResult = { link: Link; isNew: boolean };

// Each lost race is one that another request won. A link that appears and disappears this often is being fought over.
const MAX_RACES = 25;

/**
 * Creates the link with an external id, or replaces its fields; an omitted slug is kept.
 * @throws Problem 409, 412, or 503 if the link is created and deleted concurrently all the time
 */
export async function upsertLink(
  store: LinkStore,
  caller: Caller,
  externalId: string,
  input: LinkInput,
  precondition?: Precondition,
): Promise<UpsertResult> {
  for (let attempt = 0; attempt < MAX_RACES; attempt++) {
    const existing = await store.findByExternalId(caller.organizationId, externalId);
    // RFC 9110 §13.1.1: If-Match is false for a resource that doesn't exist, even with "*".
    if (precondition && !(existing && precondition(existing.version))) throw preconditionFailed();
    const result = existing
      ? await replaceLink(store, caller, existing, input, precondition && existing.version)
      : await insertLink(store, caller, externalId, input);
    if (result) return result;
  }
  throw upsertContention();
}

/** Resolves to `undefined` if another request created the link first. */
async function insertLink(
  store: LinkStore,
  caller: Caller,
  externalId: string,
  input: LinkInput,
): Promise<UpsertResult | undefined> {
  const result = await tryCreateLink(store, caller, input);
  if ("taken" in result) {
    // The winner of a race has the same slug as well, and databases differ in which of the two conflicts they report.
    const lostRace =
      result.taken === "external_id" || (await store.findByExternalId(caller.organizationId, externalId));
    if (lostRace) return undefined;
  }
  return { link: assertNoConflict(result), isNew: true };
}

/** Resolves to `undefined` if another request changed or deleted the link first. */
async function replaceLink(
  store: LinkStore,
  { organizationId, actor }: Caller,
  { id }: Link,
  input: LinkInput,
  version: number | undefined,
): Promise<UpsertResult | undefined> {
  const { archived, ...fields } = { ...LINK_DEFAULTS, ...toFields(input) };
  const result = assertEnabled(
    await withQuotaProblems(store.update(organizationId, id, fields, actor, version)),
  );
  if (!result || result === "stale") return undefined;
  return { link: assertNoConflict(result), isNew: false };
}
