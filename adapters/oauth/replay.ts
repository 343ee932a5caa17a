import { sha256 } from "../crypto/ids.ts";
import { ifDuplicate } from "../database/errors.ts";
import type { Database } from "../database/index.ts";

/** A JWT that may be used only once. `expiresAt` is until when it is otherwise accepted, in epoch milliseconds. */
export type SingleUse = { issuer: string; jti: string; expiresAt: number };

// The name of oidc-provider's model.
const KIND = "ReplayDetection";

export type ReplayStore = ReturnType<typeof createReplayStore>;

/** Remembers which JWTs were used (RFC 7523 §3, RFC 9449 §11.1). A single INSERT decides. */
export function createReplayStore({ inserter }: Database) {
  const insert = inserter({
    tables: [{ name: "tokens", columns: ["id_hash", "kind", "payload", "expires_at"] }],
    uniqueColumn: "id_hash",
  });
  return {
    /** Records the use of a JWT. Of any number of calls, on any process, exactly one resolves to true. */
    useOnce: (jwt: SingleUse): Promise<boolean> => insert(rowOfUse(jwt)).then(() => true, ifDuplicate(false)),
  };
}

/** Returns the row that records a use. A second one for the same JWT is a duplicate. */
export function rowOfUse({ issuer, jti, expiresAt }: SingleUse) {
  // JSON keeps the two apart: neither can continue in the other.
  const id_hash = sha256(JSON.stringify([KIND, issuer, jti]));
  return { id_hash, kind: KIND, payload: "{}", expires_at: expiresAt };
}
