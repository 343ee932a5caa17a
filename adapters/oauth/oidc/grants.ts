import type { Knex } from "knex";
import { type AdapterPayload, errors, type InteractionResults, Provider } from "oidc-provider";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import { lockConsent } from "../consents.ts";
import { toDomainEvent } from "../grant-events.ts";
import { revokeGrants } from "../grants.ts";
import { answerConsent } from "./interactions.ts";
import { takeGrant } from "./kept-grants.ts";
import { type ModelAdapter, toStored } from "./model.ts";
import { type ReplayedKind, revokeReplayedGrant } from "./replays.ts";

/** The answered consent page of a grant: the id of the interaction, and the result that refers to the grant. */
export type ConsentAnswer = { interactionId: string; result: InteractionResults };

/**
 * How a grant came about. `answers`: on a consent page. `remembers`: without a page, because of the grant with this id,
 * whose consent covers it.
 */
type Origin = { answers?: ConsentAnswer; remembers?: string };

/** Stores grants. Revoking one updates a single row and invalidates every token issued under it. */
export function grantAdapter({ knex, prepare, transaction }: Database, outbox: Outbox): ModelAdapter {
  const active = (id: string) => knex("grants").where({ id }).whereNull("revoked_at");
  const selectActive = prepare<{ payload: string }[], "id">((q, { id }) =>
    q("grants").where({ id }).whereNull("revoked_at").select("payload"),
  );
  return {
    async upsert(id, { answers, remembers, ...payload }: AdapterPayload & Origin) {
      const expires_at = (payload.exp as number) * 1000;
      const stored = toStored(payload);
      if (await active(id).update({ payload: stored, expires_at })) return;
      const created_at = Date.now();
      const grant = {
        id,
        client_id: payload.clientId as string,
        user_id: payload.accountId as string,
        organization_id: (payload.organizationId as string | undefined) ?? null,
        payload: stored,
      };
      await transaction(async (trx) => {
        // Locked before the interaction, as by everything that ends the sessions of a user.
        if (grant.organization_id) await requireMembership(trx, grant.user_id, grant.organization_id);
        // The grant and the answer are stored together, so one consent page creates one grant.
        if (answers) await answerConsent(trx, answers.interactionId, answers.result);
        const consent = remembers
          ? await lockConsent(trx, remembers)
          : { expires_at, ...(answers && { consent_id: id, consented_at: created_at }) };
        await trx("grants").insert({ ...grant, created_at, ...consent });
        const actor = { id: grant.user_id, address: payload.address as string };
        const consentedAt = remembers ? consent.consented_at : undefined;
        await outbox.record(trx, actor, ...toDomainEvent("authorization.granted", grant, consentedAt));
      });
    },

    async find(id) {
      const payload = takeGrant(id) ?? (await selectActive({ id }))[0]?.payload;
      return payload && { ...JSON.parse(payload), jti: id };
    },

    /** Revokes a grant because the client asked for it, or because a code or token was replayed. */
    async destroy(id) {
      const replayed = replayedKind();
      await transaction(async (trx) => {
        const grant = await trx("grants").where({ id }).first();
        if (!grant) return;
        const actor = { id: grant.client_id };
        if (!replayed) return void (await revokeGrants(trx, outbox, actor, { id }));
        await revokeReplayedGrant(trx, outbox, grant, replayed, Provider.ctx?.ip);
      });
    },
  };
}

/** Returns what the current token request used again. Only there, the library revokes a grant because of a replay. */
function replayedKind(): ReplayedKind | undefined {
  const { oidc } = Provider.ctx ?? {};
  if (oidc?.route !== "token") return undefined;
  return oidc.params?.grant_type === "refresh_token" ? "refresh_token" : "authorization_code";
}

/**
 * Locks the membership and the user until the grant is stored. An earlier removal of the member, or an earlier disabling of
 * the user, makes this fail; a later one finds the grant and revokes it.
 */
async function requireMembership(trx: Knex, user_id: string, organization_id: string): Promise<void> {
  const member = await trx("memberships as m")
    .join("users as u", "u.id", "m.user_id")
    .where({ "m.user_id": user_id, "m.organization_id": organization_id })
    .whereNull("u.disabled_at")
    .forShare()
    .first("m.role");
  if (!member) throw new errors.AccessDenied("the user is no longer a member of the organization");
}
