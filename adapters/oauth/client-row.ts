import type { Plan } from "../../resources/plans.ts";
import type { LookupQuery } from "../database/batches.ts";
import type { Database } from "../database/index.ts";
import type { ClientRow } from "../database/tables/oauth.ts";
import type { OrganizationRow } from "../database/tables/organizations.ts";

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

/** A client joined with one of its unexpired secrets. The secret's columns are null for a client without one. */
export type JoinedClientRow = Omit<
  ClientRow,
  "created_at" | "updated_at" | "disabled_by" | "disabled_reason"
> &
  Pick<OrganizationRow, "name" | "plan" | "suspended_at" | "require_dpop"> & {
    secret_id: string | null;
    hash: string;
    expires_at: number | null;
  };

/** Selects a client with its organization and its unexpired secrets in one query, the most frequent of all. */
const CLIENT_BY_ID: LookupQuery<JoinedClientRow> = {
  sql: `select c.id, c.organization_id, o.name, o.plan, o.suspended_at, o.require_dpop, c.disabled_at, c.fapi,
      c.redirect_uris, c.generation, s.id as secret_id, s.hash, s.expires_at
    from clients as c
    join organizations as o on o.id = c.organization_id
    left join client_secrets as s on s.client_id = c.id and (s.expires_at is null or s.expires_at > :now)
    where c.id = :key`,
  column: "id",
  values: () => ({ now: Date.now() }),
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
  const { id, organization_id, name, plan, redirect_uris, generation } = row;
  const fapi = Boolean(row.fapi);
  const requiresDpop = Boolean(row.require_dpop);
  const suspended = row.suspended_at !== null;
  const disabled = row.disabled_at !== null;
  const secrets: Client["secrets"] = [];
  let version = `${generation} ${plan} ${requiresDpop} ${suspended} ${disabled} ${fapi}`;
  // Not ordered by the query: PostgreSQL looks up several clients together, in no order.
  const newestFirst = rows.toSorted((one, other) =>
    String(one.secret_id) > String(other.secret_id) ? -1 : 1,
  );
  for (const { secret_id, hash, expires_at: expiresAt } of newestFirst) {
    if (secret_id === null) continue;
    secrets.push({ id: secret_id, hash, expiresAt });
    version += ` ${secret_id} ${hash} ${expiresAt}`;
  }
  return {
    id,
    // Unambiguous: JSON contains no line break, and the name, which may contain one, comes last.
    version: `${version}\n${redirect_uris}\n${name}`,
    organization: { id: organization_id, name, plan, suspended, requiresDpop },
    disabled,
    fapi,
    redirectUris: JSON.parse(redirect_uris),
    generation,
    secrets,
  };
}
