import { randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import { RETRY_AFTER_S } from "../resources/http/problem.ts";
import type { Attempt, IdempotencyStore, Principal } from "../resources/idempotency/run-once.ts";
import type { Encryption } from "./crypto/encryption.ts";
import { idFromSeed, newIdSeed, sha256 } from "./crypto/ids.ts";
import { ifDuplicate } from "./database/errors.ts";
import type { Database } from "./database/index.ts";
import { contextOf, type RowOf } from "./database/tables/columns.ts";
import { idempotencyKeys } from "./database/tables/service.ts";

const LIFETIME_MS = 24 * 60 * 60 * 1000;
const LEASE_MS = RETRY_AFTER_S * 1000;
const RENEW_MS = 2000;
// Limits memory while the database is away.
const ABANDONED_MAX = 10_000;
// Each further try follows a concurrent change of the row.
const MAX_TRIES = 5;

type RowKey = Pick<RowOf<typeof idempotencyKeys>, "organization_id" | "key_hash">;
type Lease = Pick<RowOf<typeof idempotencyKeys>, "leased_by" | "ids_from">;

/** Creates the store of requests with an `Idempotency-Key`. Responses are encrypted. */
export function createIdempotencyStore(
  { knex }: Pick<Database, "knex">,
  encryption: Encryption,
): IdempotencyStore {
  const rows = (key: RowKey) => knex("idempotency_keys").where(key);
  // Leases that no attempt holds, although the database may not know: it was away when they ended.
  const abandoned = new LRUCache<string, true>({ max: ABANDONED_MAX });
  const abandon = (leased_by: string) => (error: unknown) => {
    abandoned.set(leased_by, true);
    throw error;
  };

  function attempt(key: RowKey, { leased_by, ids_from }: Lease): Attempt {
    // An attempt that was presumed dead no longer holds the lease, so its writes have no effect.
    const leased = () => rows(key).where({ leased_by });
    const renewal = setInterval(async () => {
      const live = leased().where("leased_until", ">", 0); // not if it was released meanwhile
      await live.update({ leased_until: Date.now() + LEASE_MS }).catch(() => {}); // it is renewed again
    }, RENEW_MS).unref();
    const end = async (write: Promise<unknown>) => {
      clearInterval(renewal);
      await write.catch(abandon(leased_by));
    };
    return {
      linkId: (index) => idFromSeed(ids_from, "lnk", index),
      keep: (answer) => end(leased().update({ answer: encryption.encrypt(answer, encryptionContext(key)) })),
      forget: () => end(leased().delete()),
      release() {
        abandoned.set(leased_by, true);
        return end(leased().update({ leased_until: 0 }));
      },
    };
  }

  function insert(row: RowOf<typeof idempotencyKeys>): Promise<boolean> {
    return knex("idempotency_keys")
      .insert(row)
      .then(() => true, ifDuplicate(false));
  }

  return {
    async begin(principal, idempotencyKey, fingerprint) {
      const key = rowKeyOf(principal, idempotencyKey);
      // The request may have the password of a link, which a digest of the request by itself would let others guess.
      const request_hash = sha256(JSON.stringify([idempotencyKey, fingerprint]));
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const now = Date.now();
        const lease = { leased_by: randomUUID(), leased_until: now + LEASE_MS };
        const fresh: RowOf<typeof idempotencyKeys> = {
          ...key,
          ...lease,
          request_hash,
          answer: null,
          ids_from: newIdSeed(),
          created_at: now,
          expires_at: now + LIFETIME_MS,
        };
        if (await insert(fresh).catch(abandon(lease.leased_by))) return { attempt: attempt(key, fresh) };
        const found = await rows(key).first();
        if (!found) continue;
        const isExpired = found.expires_at <= now;
        if (!isExpired && found.request_hash !== request_hash) return { refused: "reused" };
        if (!isExpired && found.answer !== null)
          return { answer: encryption.decrypt(found.answer, encryptionContext(key)) };
        const isLeased = found.leased_until > now && !abandoned.has(found.leased_by);
        if (!isExpired && isLeased) return { refused: "in_use" };
        const next = isExpired ? fresh : { ...lease, ids_from: found.ids_from };
        const taken = rows(key).where({ leased_by: found.leased_by }).update(next);
        if (await taken.catch(abandon(lease.leased_by))) return { attempt: attempt(key, next) };
      }
      return { refused: "in_use" };
    },
  } satisfies IdempotencyStore;
}

/** The hash includes the principal, the only one that may see the response again. JSON keeps different ones apart. */
function rowKeyOf({ organizationId, clientId, userId }: Principal, key: string): RowKey {
  return {
    organization_id: organizationId,
    key_hash: sha256(JSON.stringify([clientId, userId ?? null, key])),
  };
}

function encryptionContext({ organization_id, key_hash }: RowKey): string {
  return contextOf(idempotencyKeys.columns.answer, organization_id, key_hash);
}
