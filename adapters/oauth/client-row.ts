import type { Plan } from "../../resources/plans.ts";
import type { LookupQuery } from "../database/batches.ts";
import type { Database } from "../database/index.ts";
import type { Flag } from "../database/tables/columns.ts";

/** A client with the data that authentication needs. */
export type Client = {
  id: string;
  /** Differs between any two states of the other fields. */
  version: string;
  organization: { id: string; name: string; plan: Plan; suspended: boolean; requiresDpop: boolean };
  disabled: boolean;
  /** Whether it follows the FAPI 2.0 Security Profile, which requires DPoP. */
  fapi: boolean;
  redirectUris: string[];
  generation: number;
  /** Unexpired secrets, newest first; at most two. */
  secrets: { id: string; hash: string; expiresAt: number | null }[];
};

/** Selects a client with its organization and its unexpired secrets in one query, the most frequent of all. */
const CLIENT_BY_ID: LookupQuery<JoinedClientRow> = {
  sql: `select c.id, o.id as "organizationId", o.name, o.plan, o.suspended_at as "suspendedAt",
      o.require_dpop as "requiresDpop", c.disabled_at as "disabledAt", c.fapi, c.redirect_uris as "redirectUris",
      c.generation, s.id as "secretId", s.hash, s.expires_at as "expiresAt"
    from clients as c
    join organizations as o on o.id = c.organization_id
    left join client_secrets as s on s.client_id = c.id and (s.expires_at is null or s.expires_at > :now)
    where c.id = :key`,
  column: "id",
  values: () => ({ now: Date.now() }),
};

/** A client joined with one of its unexpired secrets. The secret's columns are null for a client without one. */
export type JoinedClientRow = {
  id: string;
  organizationId: string;
  name: string;
  plan: Plan;
  suspendedAt: number | null;
  requiresDpop: Flag;
  disabledAt: number | null;
  fapi: Flag;
  redirectUris: string;
  generation: number;
  secretId: string | null;
  hash: string;
  expiresAt: number | null;
};

/** Creates a function that finds a client by its id. */
export function createFindClient({ lookup }: Pick<Database, "lookup">) {
  const find = lookup(CLIENT_BY_ID);
  return async (clientId: string): Promise<Client | undefined> => toClient(await find(clientId));
}

/** Combines the rows of a client, one for each secret. Returns undefined for no rows. */
export function toClient(rows: JoinedClientRow[]): Client | undefined {
  const [row] = rows;
  if (!row) return undefined;
  const { id, organizationId, name, plan, redirectUris, generation } = row;
  const fapi = Boolean(row.fapi);
  const requiresDpop = Boolean(row.requiresDpop);
  const suspended = row.suspendedAt !== null;
  const disabled = row.disabledAt !== null;
  const secrets: Client["secrets"] = [];
  let version = `${generation} ${plan} ${requiresDpop} ${suspended} ${disabled} ${fapi}`;
  // Not ordered by the query: PostgreSQL looks up several clients together, in no order.
  const newestFirst = rows.toSorted((one, other) => (String(one.secretId) > String(other.secretId) ? -1 : 1));
  for (const { secretId, hash, expiresAt } of newestFirst) {
    if (secretId === null) continue;
    secrets.push({ id: secretId, hash, expiresAt });
    version += ` ${secretId} ${hash} ${expiresAt}`;
  }
  return {
    id,
    // Unambiguous: JSON contains no line break, and the name, which may contain one, comes last.
    version: `${version}\n${redirectUris}\n${name}`,
    organization: { id: organizationId, name, plan, suspended, requiresDpop },
    disabled,
    fapi,
    redirectUris: JSON.parse(redirectUris),
    generation,
    secrets,
  };
}
