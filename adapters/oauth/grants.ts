import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Role } from "../../resources/access/scopes.ts";
import { SYSTEM } from "../../resources/events/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import type { Database } from "../database/index.ts";
import type { GrantRow } from "../database/tables/oauth.ts";
import type { Change, DomainEvent, Outbox } from "../events/outbox.ts";
import { removeCreatedWebhooks } from "../webhooks/store.ts";

/** A grant, with those that follow from the same consent. Times are epoch milliseconds. */
export type AuthorizedApp = {
  /** The id of the first of these grants. */
  id: string;
  clientId: string;
  organizationId: string;
  /** The name of an organization's client. Null for a client with a metadata document. */
  appName: string | null;
  appOrganization: string | null;
  userId: string;
  username: string;
  role: Role;
  /** The granted scopes. The client can use those that the role allows. */
  scopes: string[];
  grantedAt: number;
  expiresAt: number;
  lastUsedAt: number | null;
};

export type ReusedKind = "authorization_code" | "device_code" | "refresh_token";

export type GrantStore = ReturnType<typeof createGrantStore>;

export function createGrantStore({ knex }: Database, outbox: Outbox, encryption: Encryption) {
  async function list(filter: object): Promise<AuthorizedApp[]> {
    const rows: ListedGrant[] = await knex("grants as g")
      .join("users as u", "u.id", "g.user_id")
      .join("memberships as m", (join) =>
        join.on("m.user_id", "g.user_id").andOn("m.organization_id", "g.organization_id"),
      )
      .leftJoin("clients as c", "c.id", "g.client_id")
      .leftJoin("organizations as o", "o.id", "c.organization_id")
      .leftJoin("client_profiles as p", "p.client_id", "c.id")
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
        appName: knex.raw("coalesce(??, ??)", ["p.name", "o.name"]),
        appOrganization: "o.name",
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
    listByOrganization: (organizationId: string) => list({ "g.organization_id": organizationId }),

    listByUser: (userId: string) => list({ "g.user_id": userId }),

    /** Revokes a grant with those of its consent; `deletesWebhooks` also deletes the webhooks created under it. */
    revoke: (
      organizationId: string,
      grantId: string,
      actor: Actor,
      { deletesWebhooks = false }: { deletesWebhooks?: boolean } = {},
    ): Promise<boolean> =>
      outbox.change(actor, async (change) => {
        const matching: Knex.QueryCallback = (grant) =>
          grant.where({ organization_id: organizationId }).where(ofConsent(grantId));
        if (deletesWebhooks) {
          const grant = await change.trx("grants").where(matching).whereNull("revoked_at").first();
          if (!grant) return false;
          const creator = { userId: grant.user_id, clientId: grant.client_id };
          // Webhooks first, so they don't receive the event of the revocation.
          await removeCreatedWebhooks(change, encryption, organizationId, creator);
        }
        return (await revokeGrants(change, matching)) > 0;
      }),

    /** Revokes a grant and those of its consent, of any organization; true also for one that was revoked before. */
    revokeAny: (grantId: string, actor: Actor): Promise<boolean> =>
      outbox.change(actor, async (change) => {
        const matching = ofConsent(grantId);
        if (!(await change.trx("grants").where(matching).first("id"))) return false;
        await revokeGrants(change, matching);
        return true;
      }),

    /** Revokes the grant of a code or token that was used again; of concurrent reuses, one is recorded. */
    revokeReused: (id: string, replayed: ReusedKind, address: string): Promise<void> =>
      outbox.change({ ...SYSTEM, address }, async (change) => {
        const { trx, record } = change;
        const grant = await trx("grants").where({ id }).first("client_id", "user_id", "organization_id");
        if (!grant || !(await revokeGrants(change, { id }, "", "replay_detected"))) return;
        const { client_id, user_id, organization_id } = grant;
        // A first-party grant belongs to no organization and concerns all of the user's.
        const organizationIds: string[] = organization_id
          ? [organization_id]
          : await trx("memberships").where({ user_id }).pluck("organization_id");
        const data = { grant_id: id, client_id, user_id, replayed };
        const type = "token.replay_detected" as const;
        await record(
          ...organizationIds.map((organizationId) => ({ organizationId, type, subject: id, data })),
        );
      }),
  };
}

/** Matches a grant, and those that follow from it. */
function ofConsent(grantId: string): Knex.QueryCallback {
  return (grant) => grant.where({ id: grantId }).orWhere({ consent_id: grantId });
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
      lastUsedAt: Math.max(...group.map((grant) => grant.lastUsedAt ?? 0)) || null,
    };
  });
  return apps.sort((one, other) => other.grantedAt - one.grantedAt);
}

/** Revokes matching grants except one, and returns their number. Part of the caller's transaction. */
export async function revokeGrants(
  { trx, record }: Change,
  filter: Partial<Grant> | Knex.QueryCallback,
  exceptId = "",
  reason?: "replay_detected",
): Promise<number> {
  const matching: Knex.QueryCallback = (grant) => grant.where(filter).whereNot("id", exceptId);
  await blockConsents(trx, matching);
  const grants = await trx("grants").where(matching).whereNull("revoked_at").forUpdate(); // of two concurrent revocations, one records the event
  if (grants.length === 0) return 0;
  const ids = grants.map(({ id }) => id);
  await trx("grants").whereIn("id", ids).update({ revoked_at: Date.now() });
  await record(...grants.flatMap((grant) => toDomainEvent("authorization.revoked", grant, reason)));
  return ids.length;
}

/** Keeps grants from being stored that would follow from these consents, until the transaction ends. */
async function blockConsents(trx: Knex.Transaction, filter: Knex.QueryCallback): Promise<void> {
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

/** The columns of a grant that its events describe. */
export type Grant = Pick<GrantRow, "id" | "client_id" | "user_id" | "organization_id" | "payload">;

/** Returns no event for a grant without an organization. `reason` says why the service itself revoked it. */
export function toDomainEvent(
  type: "authorization.granted" | "authorization.revoked",
  { id, client_id, user_id, organization_id, payload }: Grant,
  reason?: "replay_detected",
): DomainEvent[] {
  if (!organization_id) return [];
  const data = { grant_id: id, client_id, user_id, scopes: scopesOf(payload), ...(reason && { reason }) };
  return [{ organizationId: organization_id, type, subject: id, data }];
}

function scopesOf(payload: string): string[] {
  const { openid, resources = {} } = JSON.parse(payload) as {
    openid?: { scope?: string };
    resources?: Record<string, string>;
  };
  const scopes = [openid?.scope ?? "", ...Object.values(resources)].flatMap((scope) => scope.split(" "));
  return [...new Set(scopes.filter(Boolean))].sort();
}
