import type { Knex } from "knex";
import type { Actor } from "../resources/access/actor.ts";
import { recordNotice } from "./accounts/notices.ts";
import { hasChecksum, sha256 } from "./crypto/ids.ts";
import type { Database } from "./database/index.ts";
import type { Change, Outbox } from "./events/outbox.ts";
import { createChangeClient } from "./oauth/change-client.ts";
import { unexpired } from "./oauth/client-secrets.ts";
import { revokeGrants } from "./oauth/grants.ts";
import { tokenKey } from "./oauth/token-row.ts";

export type Leak = {
  credential: string;
  /** The kind of place, such as `commit`, and the URL where it was found. Both come from the report. */
  source: string | null;
  url: string | null;
};

const TOKEN_KINDS = ["AccessToken", "ClientCredentials", "RefreshToken"];

export function createLeakStore({ knex }: Database, outbox: Outbox) {
  const changeClient = createChangeClient(outbox);

  async function revokeSecret(actor: Actor, { credential, source, url }: Leak): Promise<boolean> {
    const hash = sha256(credential);
    const owner = await knex("client_secrets as s")
      .join("clients as c", "c.id", "s.client_id")
      .where("s.hash", hash)
      .first("c.organization_id");
    if (!owner) return false;
    const organizationId = owner.organization_id;
    return changeClient(organizationId, actor, false, async (client) => {
      const leaked = client.trx("client_secrets").where({ client_id: client.id, hash }).where(unexpired);
      const secret = await leaked.clone().first("id", "last4");
      if (!secret) return false;
      await leaked.update({ expires_at: Date.now() });
      // The tokens of the client may have been issued to someone who found the secret.
      await client.revokeTokens();
      const { id: secret_id, last4 } = secret;
      await client.record("client.secret_leaked", { secret_id, last4, source, url });
      await notifyOwners(client.trx, organizationId, `client secret ending in ${last4}`);
      return true;
    });
  }

  async function revokeToken(change: Change, { credential, source, url }: Leak) {
    const { trx } = change;
    const id_hash = tokenKey(credential);
    const token = await trx("tokens")
      .where({ id_hash })
      .whereIn("kind", TOKEN_KINDS)
      .where("expires_at", ">", Date.now())
      .first("kind", "client_id", "grant_id");
    if (!token) return false;
    const { client_id, grant_id } = token;
    const token_type = token.kind === "RefreshToken" ? "refresh_token" : "access_token";
    const record = (organizationId: string, user_id: string | null) => {
      const data = { client_id, token_type, source, url, user_id };
      return change.record({ organizationId, type: "token.leaked", subject: client_id, data });
    };
    if (!grant_id) {
      if ((await trx("tokens").where({ id_hash }).delete()) === 0) return false;
      const client = await trx("clients")
        .where({ id: client_id ?? "" })
        .first("organization_id");
      if (!client) return true;
      await record(client.organization_id, null);
      await notifyOwners(trx, client.organization_id, "access token");
      return true;
    }
    const grant = await trx("grants").where({ id: grant_id }).first("user_id", "organization_id");
    if (!grant || (await revokeGrants(change, { id: grant_id })) === 0) return false;
    if (grant.organization_id) await record(grant.organization_id, grant.user_id);
    const data = { name: token_type.replace("_", " ") };
    await recordNotice(trx, { userId: grant.user_id, kind: "credential_leaked", data });
    return true;
  }

  return {
    /** Revokes a secret with all access of its client, or a token with its authorization; false if it isn't valid. */
    async revoke(leak: Leak, actor: Actor): Promise<boolean> {
      const { credential } = leak;
      if (!/^lg[sar]_/.test(credential) || !hasChecksum(credential)) return false;
      return credential.startsWith("lgs_")
        ? revokeSecret(actor, leak)
        : outbox.change(actor, (change) => revokeToken(change, leak));
    },
  };
}

async function notifyOwners(trx: Knex.Transaction, organizationId: string, what: string): Promise<void> {
  const organization = await trx("organizations").where({ id: organizationId }).first("name");
  const owners: string[] = await trx("memberships")
    .where({ organization_id: organizationId, role: "owner" })
    .orderBy("user_id")
    .pluck("user_id");
  const data = { name: `${what} of ${organization?.name}` };
  for (const userId of owners) await recordNotice(trx, { userId, kind: "credential_leaked", data });
}
