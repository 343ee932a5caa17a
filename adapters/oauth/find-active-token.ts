import type { ActiveToken } from "../resources/ports.ts";
import { isAccessToken, selectToken, type TokenRow, toActiveToken } from "./active-token.ts";
import type { Database } from "./database.ts";
import { sha256 } from "./hash.ts";
import type { UsageNotes } from "./usage.ts";

/** Finds a live access token, in one statement, and notes that its grant was used. */
export function createTokenReader(
  { prepare }: Database,
  usage: UsageNotes,
): (token: string) => Promise<ActiveToken | undefined> {
  const select = prepare<TokenRow[]>((knex, { hash }) => selectToken(knex, hash));

  return async (token) => {
    const [row] = await select({ hash: sha256(token) });
    if (!row || !isAccessToken(row.kind)) return undefined;
    const active = toActiveToken(row, JSON.parse(row.payload));
    if (active) usage.note(row);
    return active;
  };
}
