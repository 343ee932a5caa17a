import type { Context } from "koa";
import type { Provider } from "oidc-provider";
import { SESSION_LIFETIME } from "../settings/token-lifetimes.ts";

const DAY_S = 24 * 3600;
// Enough for the list of sessions; a header may have 16 KB.
const USER_AGENT_MAX = 255;
// OWASP ASVS 5.0 V7.3.1: sessions also expire after inactivity.
const IDLE_S = 7 * DAY_S;

export type Method = "password" | "totp" | "recovery_code" | "passkey" | "sso";

/** RFC 8176 §2. */
export const MULTIPLE_FACTORS = "mfa";

/** An identity provider reports multiple factors as `mfa`. */
export function isMultiFactor({ amr }: { amr?: readonly string[] | undefined }): boolean {
  return amr?.includes(MULTIPLE_FACTORS) ?? false;
}

/** `loginTs` is when the session began. */
export type Session = InstanceType<Provider["Session"]> & {
  methods?: Method[];
  /** In epoch seconds; absent if an identity provider didn't say when. */
  provedAt?: number;
  /** The passkey or, hashed, the SSO identity that started the session. */
  credential?: string;
  address?: string;
  userAgent?: string;
  /** In epoch seconds. */
  seenAt?: number;
};

/** Returns for how many more seconds a session is valid if it is used now. */
export function sessionLifetime({ iat }: { iat?: number }): number {
  const now = epochSeconds();
  return Math.max(1, Math.min(IDLE_S, (iat ?? now) + SESSION_LIFETIME - now));
}

export function recordSessionUse(session: Session, ctx: Context): void {
  session.address = ctx.ip;
  session.userAgent = ctx.get("user-agent").slice(0, USER_AGENT_MAX);
  session.seenAt = epochSeconds();
}

export function epochSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
