import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import {
  type Attempt,
  type IdempotencyStore,
  LEASE_S,
  type Principal,
} from "../resources/idempotency/run-once.ts";
import type { Encryption } from "./crypto/encryption.ts";
import { sha256 } from "./crypto/hash.ts";
import { idFromSeed, newIdSeed } from "./crypto/ids.ts";
import { ifDuplicate } from "./database/errors.ts";
import type { Database } from "./database/index.ts";
import { StorageUnavailable } from "./database/retry.ts";
import { contextOf, type RowOf } from "./database/tables/columns.ts";
import { idempotencyKeys } from "./database/tables/service.ts";
import { createWriteBehindBuffer } from "./database/write-behind.ts";

const LIFETIME_MS = 24 * 60 * 60 * 1000;
const LEASE_MS = LEASE_S * 1000;
const RENEW_MS = 2000;
// Longer than any request takes.
const RENEWALS_MAX = 30;
// A response doesn't wait longer for the release of its key.
const RELEASE_MS = 1000;
const RETRY_MS = 200;
// Limits memory while the database is away.
const UNFINISHED_MAX = 10_000;
// Each further try follows a concurrent change of the row.
const MAX_TRIES = 5;

type RowKey = Pick<RowOf<typeof idempotencyKeys>, "organization_id" | "key_hash">;
type Lease = Pick<RowOf<typeof idempotencyKeys>, "leased_by" | "ids_from">;
type Write = () => Promise<void>;

/** Creates the store of requests with an `Idempotency-Key`. Responses are encrypted. */
export function createIdempotencyStore(
  { knex }: Pick<Database, "knex">,
  encryption: Encryption,
): IdempotencyStore {
  const rows = (key: RowKey) => knex("idempotency_keys").where(key);
  // The last writes of attempts that failed with the database, by the holder of the lease.
  const unfinished = new LRUCache<string, Write>({ max: UNFINISHED_MAX });
  const retries = createWriteBehindBuffer(async () => {
    for (const [holder, write] of [...unfinished.entries()]) {
      await write().catch(throwOutage);
      unfinished.delete(holder);
    }
  }, RETRY_MS);

  /** Returns what handles an error of a write that has to take effect once the database is available. */
  const tryLater = (holder: string, write: Write) => (error: unknown) => {
    if (!(error instanceof StorageUnavailable)) throw error;
    unfinished.set(holder, write);
    retries.schedule();
  };

  function attempt(key: RowKey, { leased_by, ids_from }: Lease): Attempt {
    // An attempt that was presumed dead no longer holds the lease, so its writes have no effect.
    const leased = () => rows(key).where({ leased_by });
    // Not if it was released meanwhile.
    const live = () => leased().where("leased_until", ">", 0);
    let renewals = 0;
    const renewal = setInterval(() => {
      if (++renewals === RENEWALS_MAX) clearInterval(renewal);
      live()
        .update({ leased_until: Date.now() + LEASE_MS })
        .catch(() => {}); // it is renewed again
    }, RENEW_MS).unref();
    const end = (write: Write) => {
      clearInterval(renewal);
      return write().catch(tryLater(leased_by, write));
    };
    return {
      linkId: (index) => idFromSeed(ids_from, "lnk", index),
      keep(response) {
        const answer = encryption.encrypt(response, encryptionContext(key));
        return end(async () => void (await leased().update({ answer })));
      },
      forget: () => end(async () => void (await leased().delete())),
      async release() {
        const released = end(() => release(key, leased_by));
        await Promise.race([released, sleep(RELEASE_MS, undefined, { ref: false })]);
      },
    };
  }

  const release = async (key: RowKey, leased_by: string) =>
    void (await rows(key).where({ leased_by }).update({ leased_until: 0 }));

  /** A write that failed with the database may have taken the lease. Then the lease ends as soon as possible. */
  const acquire = (key: RowKey, { leased_by }: Lease, taken: Promise<boolean>): Promise<boolean> =>
    taken.catch((error) => {
      tryLater(leased_by, () => release(key, leased_by))(error);
      throw error;
    });

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
        if (await acquire(key, fresh, insert(fresh))) return { attempt: attempt(key, fresh) };
        const found = await rows(key).first();
        if (!found) continue;
        const write = unfinished.get(found.leased_by);
        if (write) {
          await write();
          unfinished.delete(found.leased_by);
          continue;
        }
        const isExpired = found.expires_at <= now;
        if (!isExpired && found.request_hash !== request_hash) return { refused: "reused" };
        if (!isExpired && found.answer !== null)
          return { answer: encryption.decrypt(found.answer, encryptionContext(key)) };
        if (!isExpired && found.leased_until > now) return { refused: "in_use" };
        const next = isExpired ? fresh : { ...lease, ids_from: found.ids_from };
        const taken = rows(key).where({ leased_by: found.leased_by }).update(next).then(Boolean);
        if (await acquire(key, next, taken)) return { attempt: attempt(key, next) };
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

function throwOutage(error: unknown): void {
  if (error instanceof StorageUnavailable) throw error;
}
