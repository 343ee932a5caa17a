import type { Knex } from "knex";
import type { Plan } from "../resources/plans.ts";
import { unplanned } from "./statement.ts";

/** What authentication needs to know of a client. */
export type Client = {
  id: string;
  /** Changes whenever anything else here changes. */
  version: string;
  organization: { id: string; name: string; plan: Plan };
  redirectUris: string[];
  generation: number;
  /** The live secrets, newest first; at most two. */
  secrets: { id: string; hash: string; expiresAt: number | null }[];
};

/** Selects a client with its organization and its live secrets: authentication is the most frequent read of all. */
export function selectClient(knex: Knex, clientId: unknown, now: unknown): Knex.QueryBuilder {
  return knex("clients as c")
    .join("organizations as o", "o.id", "c.organization_id")
    .leftJoin("client_secrets as s", (secret) =>
      secret
        .on("s.client_id", "c.id")
        .andOn((live) => live.onNull("s.expires_at").orOn("s.expires_at", ">", unplanned(knex, now))),
    )
    .where("c.id", unplanned(knex, clientId))
    .orderBy("s.id", "desc")
    .select(COLUMNS);
}

/** A client joined with one of its live secrets; the columns of the secret are null for a client without one. */
export type ClientRow = {
  id: string;
  organizationId: string;
  name: string;
  plan: Plan;
  redirectUris: string;
  generation: number;
  secretId: string | null;
  hash: string;
  expiresAt: number | null;
};

const COLUMNS = {
  id: "c.id",
  organizationId: "o.id",
  name: "o.name",
  plan: "o.plan",
  redirectUris: "c.redirect_uris",
  generation: "c.generation",
  secretId: "s.id",
  hash: "s.hash",
  expiresAt: "s.expires_at",
};

/** Returns the client of these rows, one for each live secret; nothing for no rows. */
export function toClient(rows: ClientRow[]): Client | undefined {
  const [row] = rows;
  if (!row) return undefined;
  const { id, organizationId, name, plan, redirectUris, generation } = row;
  const secrets: Client["secrets"] = [];
  let version = `${generation} ${plan}`;
  for (const { secretId, hash, expiresAt } of rows) {
    if (secretId === null) continue;
    secrets.push({ id: secretId, hash, expiresAt });
    version += ` ${secretId} ${hash} ${expiresAt}`;
  }
  return {
    id,
    // JSON has no line break, and the name, which may have one, comes last: no two states share a version.
    version: `${version}\n${redirectUris}\n${name}`,
    organization: { id: organizationId, name, plan },
    redirectUris: JSON.parse(redirectUris),
    generation,
    secrets,
  };
}
