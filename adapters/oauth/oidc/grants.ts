import type { Knex } from "knex";
import { type Adapter, type AdapterPayload, errors, type InteractionResults } from "oidc-provider";
import type { Database } from "../../database/index.ts";
import type { GrantRow } from "../../database/tables/oauth.ts";
import type { Outbox } from "../../events/outbox.ts";
import { type Grant, revokeGrants, toDomainEvent } from "../grants.ts";
import { toStored } from "../token-row.ts";
import { answerConsent } from "./interactions.ts";

// More devices than a user has. An app that signs its users in silently creates a grant with each visit.
const GRANTS_PER_CONSENT = 100;

/** What oidc-provider stores about a grant. `jti` is its id, `exp` when it expires in epoch seconds. */
export type NewGrant = AdapterPayload & {
  jti: string;
  exp: number;
  accountId: string;
  clientId: string;
  organizationId?: string;
};

/** An active grant that follows from a consent page. Times are epoch milliseconds. */
export type Consent = {
  grantId: string;
  organizationId: string;
  /** When the consent and everything that follows from it ends. */
  expiresAt: number;
  payload: object;
};

export function createConsentStore({ knex, transaction }: Database, outbox: Outbox) {
  return {
    async list(clientId: string, userId: string): Promise<Consent[]> {
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

    /** Stores a grant and its answer, so a page creates one. Throws ConsentAnswered, InvalidRequest, AccessDenied. */
    approve: (
      grant: NewGrant,
      { interactionId, result }: { interactionId: string; result: InteractionResults },
      address: string,
    ): Promise<void> =>
      outbox.change({ id: grant.accountId, address }, async ({ trx, record }) => {
        const created_at = Date.now();
        const consented = { consent_id: grant.jti, consented_at: created_at, created_at };
        // Locked before the interaction, as by everything that ends the sessions of a user.
        await requireMembership(trx, grant);
        await answerConsent(trx, interactionId, result);
        const inserted = await insertGrant(trx, grant, { ...consented, expires_at: grant.exp * 1000 });
        await record(...toDomainEvent("authorization.granted", inserted));
      }),

    /** Stores a grant under an earlier consent, until its end; false if the consent or the membership has ended. */
    renew: (grant: NewGrant, consentedId: string): Promise<boolean> =>
      transaction(async (trx) => {
        const consent = (await lockMembership(trx, grant)) && (await lockConsent(trx, consentedId));
        if (!consent) return false;
        const inserted = await insertGrant(trx, grant, consent);
        await deleteLeastUsed(trx, inserted, consent.consent_id);
        return true;
      }),
  };
}

/** Stores grants without a consent page. Revoking one updates a single row, and invalidates every token under it. */
export function grantAdapter({ knex }: Database, outbox: Outbox): Partial<Adapter> {
  const active = (id: string) => knex("grants").where({ id }).whereNull("revoked_at");
  return {
    async upsert(id, payload: AdapterPayload) {
      const expires_at = (payload.exp as number) * 1000;
      if (await active(id).update({ payload: toStored(payload), expires_at })) return;
      const created = { ...payload, jti: id } as NewGrant;
      const actor = { id: created.accountId, address: payload.address as string };
      await outbox.change(actor, async ({ trx, record }) => {
        await requireMembership(trx, created);
        const grant = await insertGrant(trx, created, { expires_at });
        await record(...toDomainEvent("authorization.granted", grant));
      });
    },

    async find(id) {
      const payload = (await active(id).first("payload"))?.payload;
      return payload && { ...JSON.parse(payload), jti: id };
    },

    async destroy(id) {
      const grant = await knex("grants").where({ id }).first("client_id");
      if (grant) await outbox.change({ id: grant.client_id }, (change) => revokeGrants(change, { id }));
    },
  };
}

/** Locks a consent: an earlier revocation leaves none, a later one finds the grant that the caller stores. */
async function lockConsent(
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

/** Keeps the number of grants of a consent limited, by deleting the least recently used ones. */
async function deleteLeastUsed(
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

async function insertGrant(
  trx: Knex.Transaction,
  grant: NewGrant,
  consent: Pick<GrantRow, "expires_at"> & Partial<GrantRow>,
): Promise<Grant> {
  const row = {
    id: grant.jti,
    client_id: grant.clientId,
    user_id: grant.accountId,
    organization_id: grant.organizationId ?? null,
    payload: toStored(grant),
  };
  await trx("grants").insert({ ...row, created_at: Date.now(), ...consent });
  return row;
}

/** An earlier removal or disabling makes this false; a later one finds the grant and revokes it. */
async function lockMembership(
  trx: Knex.Transaction,
  { accountId: user_id, organizationId: organization_id }: NewGrant,
): Promise<boolean> {
  if (!organization_id) return true;
  const member = await trx("memberships as m")
    .join("users as u", "u.id", "m.user_id")
    .where({ "m.user_id": user_id, "m.organization_id": organization_id })
    .whereNull("u.disabled_at")
    .forShare()
    .first("m.role");
  return member !== undefined;
}

async function requireMembership(trx: Knex.Transaction, grant: NewGrant): Promise<void> {
  if (await lockMembership(trx, grant)) return;
  throw new errors.AccessDenied("the user is no longer a member of the organization");
}
