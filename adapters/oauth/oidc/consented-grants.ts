import type { Knex } from "knex";
import { type AdapterPayload, errors, type InteractionResults } from "oidc-provider";
import type { Database } from "../../database/index.ts";
import type { GrantRow } from "../../database/oauth-tables.ts";
import type { Outbox } from "../../events/outbox.ts";
import { deleteLeastUsed, lockConsent } from "../consents.ts";
import { type Grant, toDomainEvent } from "../grant-events.ts";
import { answerConsent } from "./interactions.ts";
import { toStored } from "./model.ts";

/** What oidc-provider stores about a grant. `jti` is its id, `exp` when it expires in epoch seconds. */
export type NewGrant = AdapterPayload & {
  jti: string;
  exp: number;
  accountId: string;
  clientId: string;
  organizationId?: string;
};

/** Stores the grants that users have consented to. */
export type ConsentedGrantStore = {
  /**
   * Stores a grant and the answer to its consent page together, so one page creates one grant.
   * @throws ConsentAnswered if the page has been answered; InvalidRequest if the authorization was resumed or has
   * expired; AccessDenied if the user was removed from the organization
   */
  approve(
    grant: NewGrant,
    answer: { interactionId: string; result: InteractionResults },
    address: string,
  ): Promise<void>;
  /**
   * Stores a grant without a page, because a consent covers it, and with the end of that consent. Returns false if the
   * consent has ended, or the user was removed from the organization.
   * @param consentedId the id of a grant that follows from the consent
   */
  renew(grant: NewGrant, consentedId: string): Promise<boolean>;
};

/** Creates the store of consented grants of a database. */
export function createConsentedGrantStore({ transaction }: Database, outbox: Outbox): ConsentedGrantStore {
  return {
    approve: (grant, { interactionId, result }, address) =>
      transaction(async (trx) => {
        const created_at = Date.now();
        const consented = { consent_id: grant.jti, consented_at: created_at, created_at };
        // Locked before the interaction, as by everything that ends the sessions of a user.
        await requireMembership(trx, grant);
        await answerConsent(trx, interactionId, result);
        const inserted = await insertGrant(trx, grant, { ...consented, expires_at: grant.exp * 1000 });
        const actor = { id: inserted.user_id, address };
        await outbox.record(trx, actor, ...toDomainEvent("authorization.granted", inserted));
      }),

    renew: (grant, consentedId) =>
      transaction(async (trx) => {
        const consent = (await lockMembership(trx, grant)) && (await lockConsent(trx, consentedId));
        if (!consent) return false;
        const inserted = await insertGrant(trx, grant, consent);
        await deleteLeastUsed(trx, inserted, consent.consent_id);
        return true;
      }),
  };
}

/** Inserts a grant. Part of the caller's transaction, which has locked the membership. */
export async function insertGrant(
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

/**
 * Locks the membership and the user until the grant is stored. An earlier removal of the member, or an earlier
 * disabling of the user, makes this return false; a later one finds the grant and revokes it.
 */
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

/** Locks the membership. @throws AccessDenied if there is none */
export async function requireMembership(trx: Knex.Transaction, grant: NewGrant): Promise<void> {
  if (await lockMembership(trx, grant)) return;
  throw new errors.AccessDenied("the user is no longer a member of the organization");
}
