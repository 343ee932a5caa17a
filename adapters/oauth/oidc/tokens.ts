import { type Adapter, errors } from "oidc-provider";
import type { Database } from "../../database/index.ts";
import type { AppPolicyCheck } from "../app-policy.ts";
import type { GrantUseRecorder } from "../grant-use-recorder.ts";
import {
  isAccessToken,
  isOutdated,
  type JoinedTokenRow,
  requiresDpop,
  TOKEN_BY_HASH,
  toActiveToken,
  toGrantHolder,
  tokenKey,
  toStored,
} from "../token-row.ts";
import { deviceCodeKey } from "./device-codes.ts";

/** A reuse within this time is a retry after a lost response; later, it revokes the family (RFC 9700 §4.14.2). */
const RETRY_WINDOW_MS = 10_000;
/** For public clients: the processes of an MCP host share a refresh token, and send it again more than a minute later. */
const PUBLIC_RETRY_WINDOW_MS = 120_000;
/** How many retries of one refresh token get tokens. */
const RETRIES_MAX = 10;

/** `isPublic` is whether the client of a refresh token has no credentials. */
type Redeemable = { isPublic?: boolean };

/** Stores tokens, codes and pushed authorization requests, each a `kind`, by their hashes. */
export function tokenAdapters(
  database: Database,
  grantUse: GrantUseRecorder,
  appPolicyCheck: AppPolicyCheck,
): (kind: string) => Partial<Adapter> {
  const { insert, find, consume } = tokenStatements(database);

  return (kind) => ({
    async upsert(id, payload) {
      await insert({
        id_hash: tokenKey(id),
        kind,
        client_id: payload.clientId ?? null,
        grant_id: payload.grantId ?? null,
        generation: (payload.generation as number | undefined) ?? null,
        payload: toStored(payload),
        expires_at: (payload.exp as number) * 1000,
      });
    },

    async find(id) {
      const found = await find(id);
      if (found?.kind !== kind) return undefined;
      // The token of a revoked grant is invalid, even if it was stored after the revocation.
      const isGrantInactive =
        found.grantId && (found.revokedAt !== null || (found.grantExpiresAt as number) <= Date.now());
      if (isGrantInactive || isOutdated(found)) return undefined;
      const payload = { ...JSON.parse(found.payload), jti: id };
      if (isAccessToken(kind)) {
        payload.active = toActiveToken(found, payload, appPolicyCheck);
        grantUse.record(found);
      } else {
        if (found.grantPayload) payload.grant = found.grantPayload;
        payload.holder = toGrantHolder(found, appPolicyCheck);
        payload.requiresDpop = requiresDpop(found);
      }
      if (isUnusedOrRetry(found, payload)) return payload;
      // Expires with its family, because oidc-provider ignores expired tokens and would miss the replay.
      return { ...payload, consumed: true, exp: Math.ceil(found.expiresAt / 1000) };
    },

    async consume(id) {
      const hash = tokenKey(id);
      if (await consume({ hash, kind, now: Date.now() })) return;
      if (kind === "RefreshToken") {
        const used = await find(id);
        if (await countRetry(database, hash, JSON.parse(used?.payload ?? "{}"))) return;
      }
      throw kind === "PushedAuthorizationRequest"
        ? new errors.InvalidRequestUri("request_uri was already used")
        : new errors.InvalidGrant("already used");
    },

    async destroy(id) {
      await database
        .knex("tokens")
        .where({ id_hash: tokenKey(id), kind })
        .delete();
    },
  });
}

function isUnusedOrRetry({ consumedAt }: JoinedTokenRow, payload: Redeemable): boolean {
  return consumedAt === null || Date.now() < consumedAt + retryWindowOf(payload);
}

function retryWindowOf({ isPublic }: Redeemable): number {
  return isPublic ? PUBLIC_RETRY_WINDOW_MS : RETRY_WINDOW_MS;
}

/** Counts a retry of a token that was used in its window; of concurrent calls, as many resolve to 1 as are allowed. */
function countRetry({ knex }: Database, hash: string, payload: Redeemable): Promise<number> {
  return knex("tokens")
    .where({ id_hash: hash, kind: "RefreshToken" })
    .where("consumed_at", ">", Date.now() - retryWindowOf(payload))
    .where("retries", "<", RETRIES_MAX)
    .update({ retries: knex.raw("retries + 1") });
}

// The row is kept until the family expires, so a replay is detected as long as that matters.
const CONSUME = `update tokens
  set consumed_at = :now,
    expires_at = coalesce((select g.expires_at from grants g where g.id = tokens.grant_id), expires_at)
  where id_hash = :hash and kind = :kind and consumed_at is null`;

function tokenStatements({ prepare, lookup, inserter }: Database) {
  const find = lookup(TOKEN_BY_HASH);
  return {
    find: coalesce(async (id: string) => (await find(deviceCodeKey(id)))[0]),
    insert: inserter({
      tables: [
        {
          name: "tokens",
          columns: ["id_hash", "kind", "client_id", "grant_id", "generation", "payload", "expires_at"],
        },
      ],
    }),
    /** Marks the first use. Resolves to 1 for exactly one of several concurrent calls. */
    consume: prepare<number, "hash" | "kind" | "now">(CONSUME),
  };
}

/** Combines concurrent lookups of the same id: oidc-provider looks up one token in three models. */
function coalesce<T>(find: (id: string) => Promise<T>): (id: string) => Promise<T> {
  const pending = new Map<string, Promise<T>>();
  return (id) => {
    const known = pending.get(id);
    if (known) return known;
    const result = find(id);
    pending.set(id, result);
    // Removed before the event loop continues, so a later lookup queries again.
    queueMicrotask(() => pending.delete(id));
    return result;
  };
}
