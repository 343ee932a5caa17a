import { randomUUID } from "node:crypto";
import type { IdempotencyStore, Principal } from "../resources/idempotency.ts";
import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";
import { sha256 } from "./hash.ts";
import { idFrom, newSeed } from "./id.ts";
import type { Seal } from "./seal.ts";
import { explained } from "./unavailable.ts";

const KEPT_MS = 24 * 60 * 60 * 1000;
// Longer than any request takes: who has not answered by then has died.
const LEASE_MS = 60_000;
// Each further one follows a change that somebody else made in between.
const LOOKS = 5;

type Row = {
  request_hash: string;
  answer: string | null;
  leased_by: string;
  leased_until: number;
  ids_from: string;
  expires_at: number;
};
type Place = { organization_id: string; key_hash: string };

/** The answers of a database; they may hold secrets, and are kept under `seal`. */
export function createIdempotencyStore({ knex }: Pick<Database, "knex">, seal: Seal): IdempotencyStore {
  const rows = (place: Place) => knex<Row>("idempotency_keys").where(place);
  const sealedFor = (place: Place) => `idempotency ${place.organization_id} ${place.key_hash}`;

  function attempt(place: Place, { leased_by, ids_from }: Pick<Row, "leased_by" | "ids_from">) {
    // Whatever an attempt writes that was taken for dead meanwhile goes nowhere.
    const mine = () => rows(place).where({ leased_by });
    return {
      linkId: (index: number) => idFrom(ids_from, "lnk", index),
      ...explained({
        keep: async (answer: string) =>
          void (await mine().update({ answer: seal.close(answer, sealedFor(place)) })),
        forget: async () => void (await mine().delete()),
        release: async () => void (await mine().update({ leased_until: 0 })),
      }),
    };
  }

  return explained({
    async begin(principal, key, fingerprint) {
      const place = placeOf(principal, key);
      for (let look = 0; look < LOOKS; look++) {
        const now = Date.now();
        const lease = { leased_by: randomUUID(), leased_until: now + LEASE_MS };
        const first = {
          ...lease,
          request_hash: fingerprint,
          answer: null,
          ids_from: newSeed(),
          created_at: now,
          expires_at: now + KEPT_MS,
        };
        try {
          await knex("idempotency_keys").insert({ ...place, ...first });
          return { attempt: attempt(place, first) };
        } catch (error) {
          if (!isDuplicate(error)) throw error;
        }
        const found = await rows(place).first();
        if (!found) continue;
        const isOver = found.expires_at <= now;
        if (!isOver && found.request_hash !== fingerprint) return { refused: "reused" };
        if (!isOver && found.answer !== null) return { answer: seal.open(found.answer, sealedFor(place)) };
        if (!isOver && found.leased_until > now) return { refused: "in_use" };
        const next = isOver ? first : { ...lease, ids_from: found.ids_from };
        const isTaken = await rows(place).where({ leased_by: found.leased_by }).update(next);
        if (isTaken) return { attempt: attempt(place, next) };
      }
      return { refused: "in_use" };
    },
  } satisfies IdempotencyStore);
}

/**
 * The row of a key. The principal is part of the hash: an answer may hold a secret, which only the principal that it was
 * created for may see again. As JSON, the parts of two different principals and keys never make the same text.
 */
function placeOf({ organizationId, clientId, userId }: Principal, key: string): Place {
  return {
    organization_id: organizationId,
    key_hash: sha256(JSON.stringify([clientId, userId ?? null, key])),
  };
}
