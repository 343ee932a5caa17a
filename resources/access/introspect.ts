import type { Plan } from "../plans.ts";
import type { Role } from "./scopes.ts";

/** RFC 7662 §2.2. `plan` is `free` if the client's organization or the one acted for is on it. */
export type ActiveToken = {
  clientId: string;
  /** The user who authorized the client; absent for client credentials. */
  userId?: string;
  organizationId: string;
  plan: Plan;
  /** The host of the domain that new links get; null for none, absent if it isn't known. */
  defaultDomain?: string | null;
  suspended?: boolean;
  /** The user's current role there; absent for client credentials, and if `scopes` is already limited. */
  role?: Role;
  /** The granted scopes. The effective ones are `allowedByRole(scopes, role)`. */
  scopes: ReadonlySet<string>;
  /** The resource that the token was issued for (RFC 8707). */
  audience: string;
  /** Epoch seconds. */
  expiresAt: number;
  /** The thumbprint of the key that the token is bound to (RFC 9449 §6); absent for bearer tokens. */
  jkt?: string;
  /** Whether an organization that the token depends on requires tokens to be bound to a key. */
  requiresDpop?: boolean;
};

/** Must not cache: a revocation takes effect on the next request. Rejects only if the lookup itself fails. */
export type Introspect = (token: string) => Promise<ActiveToken | undefined>;

/** Why a token, or the proof sent with it, was rejected with a 401. The message is for developers. */
export class Unauthorized extends Error {
  /** The error code of the challenge: RFC 6750 §3.1, RFC 9449 §7.1 and §9. */
  readonly code: "invalid_token" | "invalid_dpop_proof" | "use_dpop_nonce";
  constructor(code: Unauthorized["code"], message: string) {
    super(message);
    this.name = "Unauthorized";
    this.code = code;
  }
}
