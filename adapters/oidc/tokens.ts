import { errors } from "oidc-provider";
import type { Database } from "../database.ts";
import { sha256 } from "../hash.ts";
import { type ModelAdapter, toStored } from "./model.ts";

/**
 * For this long after its first use a code or a rotated refresh token is a duplicate of a request whose answer was
 * lost or is under way; later its use is a replay, which ends the whole family (RFC 9700 §4.14.2).
 */
const RETRY_WINDOW_MS = 10_000;

/** Everything that is random, hashed and short-lived: tokens, codes, pushed requests. */
export function tokenAdapter({ knex }: Database, kind: string): ModelAdapter {
  const row = (id: string) => knex("tokens").where({ id_hash: sha256(id), kind });

  /** Marks the first use. True for that one alone, however many processes try. */
  async function consumeOnce(id: string): Promise<boolean> {
    const now = Date.now();
    const consumed = await row(id)
      .whereNull("consumed_at")
      .update({
        consumed_at: now,
        // Kept as long as its family can live, so that a replay is recognised to the end.
        expires_at: knex.raw(
          "coalesce((select g.expires_at from grants g where g.id = tokens.grant_id), expires_at)",
        ),
      });
    return consumed > 0;
  }

  return {
    async upsert(id, payload) {
      await knex("tokens").insert({
        id_hash: sha256(id),
        kind,
        client_id: payload.clientId ?? null,
        grant_id: payload.grantId ?? null,
        generation: payload.generation ?? null,
        payload: toStored(payload),
        expires_at: (payload.exp as number) * 1000,
      });
    },

    async find(id) {
      const found = await knex("tokens as t")
        .leftJoin("grants as g", "g.id", "t.grant_id")
        .where({ "t.id_hash": sha256(id), "t.kind": kind })
        .first({
          payload: "t.payload",
          grantId: "t.grant_id",
          consumedAt: "t.consumed_at",
          expiresAt: "t.expires_at",
          revokedAt: "g.revoked_at",
          grantExpiresAt: "g.expires_at",
        });
      if (!found) return undefined;
      // A token of a dead grant is dead, also when it was stored after the grant had ended.
      const grantDead = found.grantId && (found.revokedAt !== null || found.grantExpiresAt <= Date.now());
      if (grantDead) return undefined;
      const payload = { ...JSON.parse(found.payload), jti: id };
      if (found.consumedAt === null || Date.now() < found.consumedAt + RETRY_WINDOW_MS) return payload;
      // The expiry of the family stands in for the token's own: an expired one could not be seen to be replayed.
      return { ...payload, consumed: true, exp: Math.ceil(found.expiresAt / 1000) };
    },

    async consume(id) {
      if (await consumeOnce(id)) return;
      if (kind === "RefreshToken" && (await wasJustRotated(id))) return;
      throw kind === "PushedAuthorizationRequest"
        ? new errors.InvalidRequestUri("request_uri was already used")
        : new errors.InvalidGrant("already used");
    },

    async destroy(id) {
      await row(id).delete();
    },
  };

  async function wasJustRotated(id: string): Promise<boolean> {
    const found = await row(id).first("consumed_at");
    return Boolean(found?.consumed_at) && Date.now() < found.consumed_at + RETRY_WINDOW_MS;
  }
}
