import type { Knex } from "knex";
import type { Plan } from "../resources/plans.ts";
import type { Database } from "./database.ts";
import { sha256 } from "./hash.ts";
import { newClientId, newId, newSecret } from "./id.ts";

/** A client with its secret, at the only time that it is known. */
export type NewClient = { clientId: string; clientSecret: string };

/** What authentication needs to know of a client. */
export type Client = {
  id: string;
  organization: { id: string; name: string; plan: Plan };
  redirectUris: string[];
  generation: number;
  /** The secrets that were live when it was written, newest first; at most two. */
  secrets: { id: string; hash: string; expiresAt: number | null }[];
};

/** A client as its owner sees it: never a secret. Times are epoch milliseconds. */
export type ClientView = {
  clientId: string;
  redirectUris: string[];
  secrets: {
    id: string;
    last4: string;
    createdAt: number;
    expiresAt: number | null;
    lastUsedAt: number | null;
  }[];
};

export type Rotation = NewClient & { previousExpiresAt: number };

/** The clients of organizations. */
export type ClientStore = {
  /** A `Client` as JSON: the text changes with whatever in it changes. Nothing for an unknown id. */
  findDocument(clientId: string): Promise<string | undefined>;
  ofOrganization(organizationId: string): Promise<ClientView | undefined>;
  /**
   * Makes a new secret; the one before lives on for `overlapMs`, older ones end now. `compromised` ends every
   * older secret, token and grant of the client now. Nothing when the organization has no client.
   */
  rotateSecret(
    organizationId: string,
    options: { overlapMs: number; compromised: boolean },
  ): Promise<Rotation | undefined>;
  /** Replaces the list. False when the organization has no client. */
  setRedirectUris(organizationId: string, uris: string[]): Promise<boolean>;
  /** Notes that a secret was used. */
  markSecretUsed(secretId: string, at: number): Promise<void>;
};

/** The clients of a database. */
export function createClientStore({ knex, prepare, transaction }: Database): ClientStore {
  const findDocument = prepare<{ document: string }[]>((q, { clientId }) =>
    q("clients").where({ id: clientId }).select("document"),
  );

  return {
    async findDocument(clientId) {
      const [row] = await findDocument({ clientId });
      return row?.document;
    },

    async ofOrganization(organizationId) {
      const client = await knex("clients")
        .where({ organization_id: organizationId })
        .first("id", "redirect_uris");
      if (!client) return undefined;
      const secrets = await knex("client_secrets")
        .where({ client_id: client.id })
        .where((live) => live.whereNull("expires_at").orWhere("expires_at", ">", Date.now()))
        .orderBy("id", "desc")
        .select({
          id: "id",
          last4: "last4",
          createdAt: "created_at",
          expiresAt: "expires_at",
          lastUsedAt: "last_used_at",
        });
      return { clientId: client.id, redirectUris: JSON.parse(client.redirect_uris), secrets };
    },

    rotateSecret: (organizationId, { overlapMs, compromised }) =>
      transaction(async (trx) => {
        const now = Date.now();
        // The update locks the row: rotations of one client follow one another.
        const locked = await trx("clients")
          .where({ organization_id: organizationId })
          .update({ updated_at: now, generation: trx.raw("generation + ?", [compromised ? 1 : 0]) });
        if (!locked) return undefined;
        const { id } = await trx("clients").where({ organization_id: organizationId }).first("id");
        const previousExpiresAt = compromised ? now : now + overlapMs;
        await endSecrets(trx, id, now, previousExpiresAt);
        if (compromised) {
          await trx("grants").where({ client_id: id }).whereNull("revoked_at").update({ revoked_at: now });
        }
        const clientSecret = await addSecret(trx, id);
        await writeDocument(trx, organizationId);
        return { clientId: id, clientSecret, previousExpiresAt };
      }),

    setRedirectUris: (organizationId, uris) =>
      transaction(async (trx) => {
        const changed = await trx("clients")
          .where({ organization_id: organizationId })
          .update({ redirect_uris: JSON.stringify(uris), updated_at: Date.now() });
        if (changed) await writeDocument(trx, organizationId);
        return changed > 0;
      }),

    async markSecretUsed(secretId, at) {
      await knex("client_secrets").where({ id: secretId }).update({ last_used_at: at });
    },
  };
}

/**
 * Writes the client's document anew; part of every transaction that changes what is in it. Authentication is the most
 * frequent of all reads, and this makes it one row of one table.
 */
export async function writeDocument(trx: Knex, organizationId: string): Promise<void> {
  const row = await trx("clients as c")
    .join("organizations as o", "o.id", "c.organization_id")
    .where("o.id", organizationId)
    .first("c.id", "c.redirect_uris", "c.generation", "o.name", "o.plan");
  if (!row) return;
  const secrets = await trx("client_secrets")
    .where({ client_id: row.id })
    .where((live) => live.whereNull("expires_at").orWhere("expires_at", ">", Date.now()))
    .orderBy("id", "desc")
    .select({ id: "id", hash: "hash", expiresAt: "expires_at" });
  const client: Client = {
    id: row.id,
    organization: { id: organizationId, name: row.name, plan: row.plan },
    redirectUris: JSON.parse(row.redirect_uris),
    generation: row.generation,
    secrets,
  };
  await trx("clients")
    .where({ id: row.id })
    .update({ document: JSON.stringify(client) });
}

/** Makes the organization's client in the caller's transaction; nothing when it has one already. */
export async function createClientFor(trx: Knex, organizationId: string): Promise<NewClient | undefined> {
  const existing = await trx("clients").where({ organization_id: organizationId }).first("id");
  if (existing) return undefined;
  const clientId = newClientId();
  const now = Date.now();
  await trx("clients").insert({
    id: clientId,
    organization_id: organizationId,
    redirect_uris: "[]",
    document: "{}",
    created_at: now,
    updated_at: now,
  });
  return { clientId, clientSecret: await addSecret(trx, clientId) };
}

async function addSecret(trx: Knex, clientId: string): Promise<string> {
  const secret = newSecret("lgs_");
  await trx("client_secrets").insert({
    id: newId("sec"),
    client_id: clientId,
    hash: sha256(secret),
    last4: secret.slice(-4),
    created_at: Date.now(),
  });
  return secret;
}

/** The newest secret ends at `previousExpiresAt`, one that was ending already ends now. */
async function endSecrets(
  trx: Knex,
  clientId: string,
  now: number,
  previousExpiresAt: number,
): Promise<void> {
  const live = () => trx("client_secrets").where({ client_id: clientId });
  await live().where("expires_at", ">", now).update({ expires_at: now });
  await live().whereNull("expires_at").update({ expires_at: previousExpiresAt });
}
