import type { ActiveToken } from "../../resources/access/introspect.ts";
import type { Database } from "../database/index.ts";
import type { ClientPolicy } from "./client-policy.ts";
import type { GrantUsage } from "./grant-usage.ts";
import { tokenKey } from "./token-keys.ts";
import { isAccessToken, TOKEN_BY_HASH, toActiveToken } from "./token-row.ts";

/** Creates a function that finds an active access token in one statement and records the use of its grant. */
export function createTokenReader(
  { lookup }: Database,
  usage: GrantUsage,
  clientPolicy: ClientPolicy,
): (token: string) => Promise<ActiveToken | undefined> {
  const find = lookup(TOKEN_BY_HASH);

  return async (token) => {
    const [row] = await find(tokenKey(token));
    if (!row || !isAccessToken(row.kind)) return undefined;
    const active = toActiveToken(row, JSON.parse(row.payload), clientPolicy);
    if (active) usage.record(row);
    return active;
  };
}
