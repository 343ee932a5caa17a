import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import type { WebhookDeletion } from "../webhooks/store.ts";
import type { ClientPolicy } from "./client-policy.ts";
import { blockConsents } from "./consents.ts";
import { type Grant, scopesOf, toDomainEvent } from "./grant-events.ts";
import { createFindGrantStatus, type GrantStatus } from "./grant-status.ts";

/**
 * What a user allowed a client to do for an organization: a grant, with those that follow from the same consent. Times
 * are epoch milliseconds.
 */
export type AuthorizedApp = {
  /** The id of the first of these grants. */
  id: string;
  clientId: string;
  /** The organization that the client acts for. */
  organizationId: string;
  /** The name of the client's organization. Null for a client with a metadata document. */
  appName: string | null;
  userId: string;
  username: string;
  /** The user's current role in that organization. */
  role: Role;
  /** The granted scopes. The client can use those that the role allows. */
  scopes: string[];
  /** When the user consented. */
  grantedAt: number;
  expiresAt: number;
  lastUsedAt: number | null;
};

/** Lists and revokes grants. */
export type GrantStore = {
  /** Lists the active authorizations for an organization, newest first. */
  listByOrganization(organizationId: string): Promise<AuthorizedApp[]>;
  /** Lists the active authorizations by a user for all organizations, newest first. */
  listByUser(userId: string): Promise<AuthorizedApp[]>;
  /**
   * Revokes a grant and those that follow from its consent, which invalidates their tokens. Returns whether there was one.
   * With `deletesWebhooks`, also deletes the webhooks that the client created for the user in this organization.
   */
  revoke(
    organizationId: string,
    grantId: string,
    actor: Actor,
    options?: { deletesWebhooks?: boolean },
  ): Promise<boolean>;
  /**
   * Revokes a grant of any organization and those that follow from its consent. Returns false if there is no such grant; one
   * that was revoked before counts.
   */
  revokeAny(grantId: string, actor: Actor): Promise<boolean>;
  /** Resolves to undefined for a revoked grant and for one without an organization. */
  findStatus(grantId: string): Promise<GrantStatus | undefined>;
};

/** Creates the grant store of a database. */
export function createGrantStore(
  { knex, prepare, transaction }: Database,
  outbox: Outbox,
  clientPolicy: ClientPolicy,
  webhookDeletion: Pick<WebhookDeletion, "removeCreated">,
): GrantStore {
  async function list(filter: object): Promise<AuthorizedApp[]> {
    const rows: ListedGrant[] = await knex("grants as g")
      .join("users as u", "u.id", "g.user_id")
      .join("memberships as m", (join) =>
        join.on("m.user_id", "g.user_id").andOn("m.organization_id", "g.organization_id"),
      )
      .leftJoin("clients as c", "c.id", "g.client_id")
      .leftJoin("organizations as o", "o.id", "c.organization_id")
      .where(filter)
      .whereNull("g.revoked_at")
      .whereNull("u.disabled_at")
      .where("g.expires_at", ">", Date.now())
      .orderBy("g.created_at", "desc")
      .select({
        id: "g.id",
        consentId: "g.consent_id",
        consentedAt: "g.consented_at",
        clientId: "g.client_id",
        organizationId: "g.organization_id",
        appName: "o.name",
        userId: "u.id",
        username: "u.username",
        role: "m.role",
        payload: "g.payload",
        grantedAt: "g.created_at",
        expiresAt: "g.expires_at",
        lastUsedAt: "g.last_used_at",
      });
    return groupByConsent(rows);
  }

  return {
    listByOrganization: (organizationId) => list({ "g.organization_id": organizationId }),
    listByUser: (userId) => list({ "g.user_id": userId }),

    revoke: (organizationId, grantId, actor, { deletesWebhooks = false } = {}) =>
      transaction(async (trx) => {
        const matching: Knex.QueryCallback = (grant) =>
          grant
            .where({ organization_id: organizationId })
            .where((either) => either.where({ id: grantId }).orWhere({ consent_id: grantId }));
        if (deletesWebhooks) {
          const grant = await trx("grants").where(matching).whereNull("revoked_at").first();
          if (!grant) return false;
          const creator = { userId: grant.user_id, clientId: grant.client_id };
          // Webhooks first, so they don't receive the event of the revocation.
          await webhookDeletion.removeCreated(trx, actor, organizationId, creator);
        }
        return (await revokeGrants(trx, outbox, actor, matching)) > 0;
      }),

    revokeAny: (grantId, actor) =>
      transaction(async (trx) => {
        const matching: Knex.QueryCallback = (grant) =>
          grant.where({ id: grantId }).orWhere({ consent_id: grantId });
        if (!(await trx("grants").where(matching).first("id"))) return false;
        await revokeGrants(trx, outbox, actor, matching);
        return true;
      }),

    findStatus: createFindGrantStatus({ prepare }, clientPolicy),
  };
}

type ListedGrant = Omit<AuthorizedApp, "scopes"> & {
  payload: string;
  consentId: string | null;
  consentedAt: number | null;
};

/** Combines the grants of each consent. */
function groupByConsent(grants: ListedGrant[]): AuthorizedApp[] {
  const groups = Map.groupBy(grants, ({ id, consentId }) => consentId ?? id);
  const apps = [...groups].flatMap(([id, group]) => {
    const [newest] = group;
    if (!newest) return [];
    const { payload: _, consentId: __, consentedAt, ...app } = newest;
    return {
      ...app,
      id,
      scopes: [...new Set(group.flatMap(({ payload }) => scopesOf(payload)))].sort(),
      grantedAt: consentedAt ?? app.grantedAt,
      lastUsedAt: group.reduce<number | null>((last, grant) => later(last, grant.lastUsedAt), null),
    };
  });
  return apps.sort((one, other) => other.grantedAt - one.grantedAt);
}

function later(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

/**
 * Revokes every matching active grant except one, which invalidates their tokens. Returns their number. Part of the
 * caller's transaction.
 */
export async function revokeGrants(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  filter: Partial<Grant> | Knex.QueryCallback,
  exceptId = "",
  reason?: "replay_detected",
): Promise<number> {
  const matching: Knex.QueryCallback = (grant) => grant.where(filter).whereNot("id", exceptId);
  await blockConsents(trx, matching);
  const grants = await trx("grants").where(matching).whereNull("revoked_at").forUpdate(); // of two concurrent revocations, one records the event
  if (grants.length === 0) return 0;
  const ids = grants.map(({ id }) => id);
  const revoked = await trx("grants")
    .whereIn("id", ids)
    .whereNull("revoked_at")
    .update({ revoked_at: Date.now() });
  await outbox.record(
    trx,
    actor,
    ...grants.flatMap((grant) => toDomainEvent("authorization.revoked", grant, reason)),
  );
  return revoked;
}
