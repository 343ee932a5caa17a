import type { Knex } from "knex";
import { type AdapterPayload, errors, type InteractionResults } from "oidc-provider";
import type { Database } from "../database.ts";
import { endGrants, toHappening } from "../grants.ts";
import type { Journal } from "../journal.ts";
import { answerConsent } from "./interactions.ts";
import { type ModelAdapter, toStored } from "./model.ts";

/** The consent page that a grant comes from: the id of the interaction, and the result that refers to the grant. */
export type ConsentAnswer = { interactionId: string; result: InteractionResults };

/** Stores grants: what a user allowed an app. Revoking one changes one row, and invalidates every token issued under it. */
export function grantAdapter({ knex, transaction }: Database, journal: Journal): ModelAdapter {
  const alive = (id: string) => knex("grants").where({ id }).whereNull("revoked_at");
  return {
    async upsert(id, { answers, ...payload }: AdapterPayload & { answers?: ConsentAnswer }) {
      const expires_at = (payload.exp as number) * 1000;
      const stored = toStored(payload);
      if (await alive(id).update({ payload: stored, expires_at })) return;
      const grant = {
        id,
        client_id: payload.clientId as string,
        user_id: payload.accountId as string,
        organization_id: (payload.organizationId as string | undefined) ?? null,
        payload: stored,
      };
      await transaction(async (trx) => {
        // A grant and the answer that it comes from are stored together: one consent page makes one grant.
        if (answers) await answerConsent(trx, answers.interactionId, answers.result);
        if (grant.organization_id) await requireMembership(trx, grant.user_id, grant.organization_id);
        await trx("grants").insert({ ...grant, created_at: Date.now(), expires_at });
        const by = { actor: grant.user_id, address: payload.address as string };
        await journal.record(trx, by, ...toHappening("authorization.granted", grant));
      });
    },

    async find(id) {
      const row = await alive(id).first("payload");
      return row && { ...JSON.parse(row.payload), jti: id };
    },

    /** At the wish of the app, or because one of its codes or tokens was used twice. */
    async destroy(id) {
      await transaction(async (trx) => {
        const grant = await trx("grants").where({ id }).first("client_id");
        if (grant) await endGrants(trx, journal, { actor: grant.client_id }, { id });
      });
    },
  };
}

/**
 * Holds the membership until the grant is stored: a removal that comes first leaves nothing to grant, one that comes
 * later finds the grant and ends it.
 */
async function requireMembership(trx: Knex, user_id: string, organization_id: string): Promise<void> {
  const member = await trx("memberships").where({ user_id, organization_id }).forShare().first("role");
  if (!member) throw new errors.AccessDenied("the user is no longer a member of the organization");
}
