import type { ActiveToken } from "../../resources/access/introspect.ts";
import { sha256 } from "../crypto/hash.ts";
import type { Database } from "../database/index.ts";
import type { ClientPolicy } from "./client-policy.ts";
import type { GrantUsage } from "./grant-usage.ts";
import { isAccessToken, type JoinedTokenRow, selectToken, toActiveToken } from "./token-row.ts";

/** Creates a function that finds an active access token in one statement and records the use of its grant. */
export function createTokenReader(
  { prepare }: Database,
  usage: GrantUsage,
  clientPolicy: ClientPolicy,
): (token: string) => Promise<ActiveToken | undefined> {
  const select = prepare<JoinedTokenRow[], "hash">((knex, { hash }) => selectToken(knex, hash));

  return async (token) => {
    const [row] = await select({ hash: sha256(token) });
    if (!row || !isAccessToken(row.kind)) return undefined;
    const active = toActiveToken(row, JSON.parse(row.payload), clientPolicy);
    if (active) usage.record(row);
    return active;
  };
}
