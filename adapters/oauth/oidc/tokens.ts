import { errors } from "oidc-provider";
import { isAccessToken, isOutdated, selectToken, type TokenRow, toActiveToken } from "../active-token.ts";
import type { Database } from "../database.ts";
import { sha256 } from "../hash.ts";
import type { UsageNotes } from "../usage.ts";
import { type ModelAdapter, toStored } from "./model.ts";

/**
 * For this long after its first use a code or a rotated refresh token is a duplicate of a request whose answer was
 * lost or is under way; later its use is a replay, which ends the whole family (RFC 9700 §4.14.2).
 */
const RETRY_WINDOW_MS = 10_000;

/** Everything that is random, hashed and short-lived: tokens, codes, pushed requests. */
export function tokenAdapter(statements: TokenStatements, usage: UsageNotes, kind: string): ModelAdapter {
  const { insert, find, consume, wasConsumed, remove } = statements;
  const key = (id: string) => ({ hash: sha256(id), kind });

  return {
    async upsert(id, payload) {
      await insert({
        id_hash: sha256(id),
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
      // A token of a dead grant is dead, also when it was stored after the grant had ended.
      const grantDead =
        found.grantId && (found.revokedAt !== null || (found.grantExpiresAt as number) <= Date.now());
      if (grantDead || isOutdated(found)) return undefined;
      const payload = { ...JSON.parse(found.payload), jti: id };
      if (isAccessToken(kind)) {
        payload.active = toActiveToken(found, payload);
        usage.note(found);
      }
      if (isRetry(found.consumedAt)) return payload;
      // The expiry of the family stands in for the token's own: an expired one could not be seen to be replayed.
      return { ...payload, consumed: true, exp: Math.ceil(found.expiresAt / 1000) };
    },

    async consume(id) {
      if (await consume({ ...key(id), now: Date.now() })) return;
      if (kind === "RefreshToken") {
        const [row] = await wasConsumed(key(id));
        if (row && isRetry(row.consumedAt)) return;
      }
      throw kind === "PushedAuthorizationRequest"
        ? new errors.InvalidRequestUri("request_uri was already used")
        : new errors.InvalidGrant("already used");
    },

    async destroy(id) {
      await remove(key(id));
    },
  };
}

/** Whether a token was never used, or so short a time ago that its use is tried again. */
function isRetry(consumedAt: number | null): boolean {
  return consumedAt === null || Date.now() < consumedAt + RETRY_WINDOW_MS;
}

/** The statements of the table that all these models share, compiled once. */
export type TokenStatements = ReturnType<typeof tokenStatements>;

/** Compiles them. */
export function tokenStatements({ prepare, inserter }: Database) {
  const select = prepare<TokenRow[]>((knex, { hash }) => selectToken(knex, hash));
  return {
    find: coalesced(async (id: string) => (await select({ hash: sha256(id) }))[0]),
    insert: inserter({
      tables: [
        {
          name: "tokens",
          columns: ["id_hash", "kind", "client_id", "grant_id", "generation", "payload", "expires_at"],
        },
      ],
    }),
    /** Marks the first use. One for that one alone, however many processes try. */
    consume: prepare<number>((knex, { hash, kind, now }) =>
      knex("tokens")
        .where({ id_hash: hash, kind })
        .whereNull("consumed_at")
        .update({
          consumed_at: now,
          // Kept as long as its family can live, so that a replay is recognised to the end.
          expires_at: knex.raw(
            "coalesce((select g.expires_at from grants g where g.id = tokens.grant_id), expires_at)",
          ),
        }),
    ),
    wasConsumed: prepare<{ consumedAt: number | null }[]>((knex, { hash, kind }) =>
      knex("tokens").where({ id_hash: hash, kind }).select({ consumedAt: "consumed_at" }),
    ),
    remove: prepare<number>((knex, { hash, kind }) => knex("tokens").where({ id_hash: hash, kind }).delete()),
  };
}

/** Joins questions about the same id at the same moment: the library asks three models for one token. */
function coalesced<T>(find: (id: string) => Promise<T>): (id: string) => Promise<T> {
  const underWay = new Map<string, Promise<T>>();
  return (id) => {
    const known = underWay.get(id);
    if (known) return known;
    const answer = find(id);
    underWay.set(id, answer);
    // Gone before anything else can happen: a question asked later is asked again.
    queueMicrotask(() => underWay.delete(id));
    return answer;
  };
}
