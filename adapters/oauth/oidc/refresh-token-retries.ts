import type { Database } from "../../database/index.ts";

/** A reuse within this time is a retry after a lost response; later, it revokes the family (RFC 9700 §4.14.2). */
const RETRY_WINDOW_MS = 10_000;
/** For public clients: the processes of an MCP host share a refresh token, and send it again more than a minute later. */
const PUBLIC_RETRY_WINDOW_MS = 120_000;
/** How many retries of one refresh token get tokens. */
const RETRIES_MAX = 10;

/** `isPublic` is whether the client of a refresh token has no credentials. */
type Redeemable = { isPublic?: boolean };

export function retryWindowOf({ isPublic }: Redeemable): number {
  return isPublic ? PUBLIC_RETRY_WINDOW_MS : RETRY_WINDOW_MS;
}

/** Counts a retry of a token that was used in its window; of concurrent calls, as many resolve to 1 as are allowed. */
export function countRetry({ knex }: Database, hash: string, payload: Redeemable): Promise<number> {
  return knex("tokens")
    .where({ id_hash: hash, kind: "RefreshToken" })
    .where("consumed_at", ">", Date.now() - retryWindowOf(payload))
    .where("retries", "<", RETRIES_MAX)
    .update({ retries: knex.raw("retries + 1") });
}
