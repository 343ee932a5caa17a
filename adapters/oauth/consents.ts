import type { Knex } from "knex";
import type { Database } from "../database/index.ts";
import type { GrantRow } from "../database/oauth-tables.ts";

// More devices than a user has. An app that signs its users in silently creates a grant with each visit.
const GRANTS_PER_CONSENT = 100;

/** An active grant that follows from a consent page. Times are epoch milliseconds. */
export type Consent = {
  /** The id of the grant. */
  grantId: string;
  organizationId: string;
  /** When the consent and everything that follows from it ends. */
  expiresAt: number;
  /** What oidc-provider stored about the grant. */
  payload: object;
};

/** Finds what users have consented to. */
export type ConsentStore = {
  /** Lists what a user currently allows a client, the newest consent first. */
  list(clientId: string, userId: string): Promise<Consent[]>;
};

/** Creates the consent store of a database. */
export function createConsentStore({ knex }: Database): ConsentStore {
  return {
    async list(clientId, userId) {
      const rows = await knex("grants")
        .where({ client_id: clientId, user_id: userId })
        .whereNotNull("consent_id")
        .whereNotNull("organization_id")
        .whereNull("revoked_at")
        .where("expires_at", ">", Date.now())
        .orderBy([
          { column: "consented_at", order: "desc" },
          { column: "created_at", order: "desc" },
        ])
        .select("id", "organization_id", "expires_at", "payload");
      return rows.map(({ id, organization_id, expires_at, payload }) => ({
        grantId: id,
        organizationId: organization_id as string,
        expiresAt: expires_at,
        payload: JSON.parse(payload),
      }));
    },
  };
}

/**
 * Returns the consent that an active grant follows from, and locks it until the caller's transaction ends: an earlier
 * revocation of it leaves none, a later one finds the grant that the caller stores.
 */
export async function lockConsent(
  trx: Knex.Transaction,
  grantId: string,
): Promise<Pick<GrantRow, "consent_id" | "consented_at" | "expires_at"> | undefined> {
  const { consent_id: consentId } = (await trx("grants").where({ id: grantId }).first("consent_id")) ?? {};
  if (consentId) await trx("grants").where({ id: consentId }).forShare().first("id");
  // Read after the lock, because a revocation may have held it.
  return trx("grants")
    .where({ id: grantId })
    .whereNotNull("consent_id")
    .whereNull("revoked_at")
    .where("expires_at", ">", Date.now())
    .forShare()
    .first("consent_id", "consented_at", "expires_at");
}

/**
 * Deletes the least recently used of the grants that follow from a consent if there are too many, and so ends them. Part of
 * the caller's transaction.
 */
export async function deleteLeastUsed(
  trx: Knex.Transaction,
  { client_id, user_id }: Pick<GrantRow, "client_id" | "user_id">,
  consent_id: string | null,
): Promise<void> {
  const ids: string[] = await trx("grants")
    .where({ client_id, user_id, consent_id })
    .whereNot("id", consent_id)
    .orderByRaw("case when revoked_at is null then 0 else 1 end, coalesce(last_used_at, created_at) desc")
    .pluck("id");
  const tooMany = ids.slice(GRANTS_PER_CONSENT);
  if (tooMany.length > 0) await trx("grants").whereIn("id", tooMany).delete();
}

/** Keeps grants from being stored that would follow from the consents of matching grants, until the transaction ends. */
export async function blockConsents(trx: Knex.Transaction, filter: Knex.QueryCallback): Promise<void> {
  const ids = await trx("grants")
    .where(filter)
    .whereNull("revoked_at")
    .whereNotNull("consent_id")
    .distinct()
    .pluck("consent_id");
  if (ids.length === 0) return;
  // In one order: two revocations must not wait for each other.
  await trx("grants").whereIn("id", ids).orderBy("id").forUpdate().select("id");
}
