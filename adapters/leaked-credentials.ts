import type { Knex } from "knex";
import type { Actor } from "../resources/access/actor.ts";
import { recordNotice } from "./accounts/notices.ts";
import { hasChecksum } from "./crypto/checksum.ts";
import { sha256 } from "./crypto/hash.ts";
import type { Database } from "./database/index.ts";
import type { DomainEvent, Outbox } from "./events/outbox.ts";
import { lockClient } from "./oauth/client-lock.ts";
import { revokeGrants } from "./oauth/grants.ts";
import { tokenKey } from "./oauth/token-keys.ts";

/** A credential that was found in public. */
export type Leak = {
  credential: string;
  /** The kind of place, such as `commit`, and the URL where it was found. Both come from the report. */
  source: string | null;
  url: string | null;
};

/** Revokes leaked credentials. */
export type LeakStore = {
  /**
   * Revokes a client secret with all tokens and grants of its client, or a token with its whole authorization. Records the
   * event, and a notice for the owners of the organization or for the user. Of concurrent reports, one succeeds. Returns
   * false if the text isn't a valid credential.
   */
  revoke(leak: Leak, actor: Actor): Promise<boolean>;
};

const TOKEN_KINDS = ["AccessToken", "ClientCredentials", "RefreshToken"];

/** Creates the store of leaked credentials. */
export function createLeakStore({ knex, transaction }: Database, outbox: Outbox): LeakStore {
  return {
    async revoke(leak, actor) {
      const { credential } = leak;
      if (!/^lg[sar]_/.test(credential) || !hasChecksum(credential)) return false;
      return credential.startsWith("lgs_")
        ? revokeSecret({ knex, transaction }, outbox, actor, leak, sha256(credential))
        : transaction((trx) => revokeToken(trx, outbox, actor, leak, tokenKey(credential)));
    },
  };
}

async function revokeSecret(
  { knex, transaction }: Pick<Database, "knex" | "transaction">,
  outbox: Outbox,
  actor: Actor,
  leak: Leak,
  hash: string,
): Promise<boolean> {
  const owner = await knex("client_secrets as s")
    .join("clients as c", "c.id", "s.client_id")
    .where("s.hash", hash)
    .first("c.organization_id");
  if (!owner) return false;
  const organizationId = owner.organization_id;
  return transaction(async (trx) => {
    const clientId = await lockClient(trx, organizationId);
    const now = Date.now();
    const found = trx("client_secrets").where({ client_id: clientId ?? "", hash });
    const secret = await found.clone().first("id", "last4", "expires_at");
    if (!clientId || !secret || (secret.expires_at !== null && secret.expires_at <= now)) return false;
    await found.update({ expires_at: now });
    // The tokens of the client may have been issued to someone who found the secret.
    await trx("clients").where({ id: clientId }).increment("generation");
    await revokeGrants(trx, outbox, actor, { client_id: clientId });
    await record(trx, outbox, actor, {
      organizationId,
      type: "client.secret_leaked",
      subject: clientId,
      data: {
        client_id: clientId,
        secret_id: secret.id,
        last4: secret.last4,
        source: leak.source,
        url: leak.url,
      },
    });
    await notifyOwners(trx, organizationId, `client secret ending in ${secret.last4}`);
    return true;
  });
}

async function revokeToken(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  leak: Leak,
  hash: string,
): Promise<boolean> {
  const token = await trx("tokens")
    .where({ id_hash: hash })
    .whereIn("kind", TOKEN_KINDS)
    .where("expires_at", ">", Date.now())
    .first("kind", "client_id", "grant_id");
  if (!token) return false;
  const { source, url } = leak;
  const details = { client_id: token.client_id, token_type: typeOf(token.kind), source, url };
  if (!token.grant_id) {
    if ((await trx("tokens").where({ id_hash: hash }).delete()) === 0) return false;
    const client = await trx("clients")
      .where({ id: token.client_id ?? "" })
      .first("organization_id");
    if (!client) return true;
    const { organization_id: organizationId } = client;
    const data = { ...details, user_id: null };
    await record(trx, outbox, actor, {
      organizationId,
      type: "token.leaked",
      subject: token.client_id,
      data,
    });
    await notifyOwners(trx, organizationId, "access token");
    return true;
  }
  const grant = await trx("grants").where({ id: token.grant_id }).first("user_id", "organization_id");
  if (!grant || (await revokeGrants(trx, outbox, actor, { id: token.grant_id })) === 0) return false;
  const { user_id, organization_id: organizationId } = grant;
  if (organizationId) {
    const data = { ...details, user_id };
    await record(trx, outbox, actor, {
      organizationId,
      type: "token.leaked",
      subject: token.client_id,
      data,
    });
  }
  await recordNotice(trx, { userId: user_id, kind: "credential_leaked", data: { name: nameOf(token.kind) } });
  return true;
}

function record(trx: Knex.Transaction, outbox: Outbox, actor: Actor, event: DomainEvent): Promise<void> {
  return outbox.record(trx, actor, event);
}

async function notifyOwners(trx: Knex.Transaction, organizationId: string, what: string): Promise<void> {
  const organization = await trx("organizations").where({ id: organizationId }).first("name");
  const owners: string[] = await trx("memberships")
    .where({ organization_id: organizationId, role: "owner" })
    .orderBy("user_id")
    .pluck("user_id");
  const name = `${what} of ${organization?.name}`;
  for (const userId of owners) await recordNotice(trx, { userId, kind: "credential_leaked", data: { name } });
}

function typeOf(kind: string): "access_token" | "refresh_token" {
  return kind === "RefreshToken" ? "refresh_token" : "access_token";
}

function nameOf(kind: string): string {
  return typeOf(kind).replace("_", " ");
}
