import type { Plan } from "../plans.ts";
import type { Role } from "./scopes.ts";

/**
 * The data of an active access token (RFC 7662 §2.2).
 * `plan` is the lower of two: `free` if either the client's organization or the organization acted for is on it.
 */
export type ActiveToken = {
  clientId: string;
  /** The user who authorized the client; absent for client credentials. */
  userId?: string;
  /** The organization acted for. */
  organizationId: string;
  plan: Plan;
  /** Whether the client's organization or the organization acted for is suspended: every request is refused. */
  suspended?: boolean;
  /** The user's current role in that organization; absent for client credentials, and if `scopes` is already limited. */
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

/**
 * Looks up an access token. Resolves to `undefined` for any that is not active: unknown, expired or revoked, of a revoked
 * grant, or issued for the dashboard. Must not cache: a revocation takes effect on the next request.
 * Rejects only if the lookup itself fails.
 */
export type Introspect = (token: string) => Promise<ActiveToken | undefined>;
