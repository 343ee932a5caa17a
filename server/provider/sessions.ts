import type { Context } from "koa";
import { Provider } from "oidc-provider";
import { SESSION_LIFETIME } from "../lifetimes.ts";

const DAY_S = 24 * 3600;
// Enough for the list of sessions; a header may have 16 KB.
const USER_AGENT_MAX = 255;
// OWASP ASVS 5.0 V7.3.1: sessions also expire after inactivity.
const IDLE_S = 7 * DAY_S;

/** How a user signed in, as the list of sessions shows it. */
export type Method = "password" | "totp" | "recovery_code" | "passkey" | "sso";

/** The session of a browser, with what the list of sessions shows about it. `loginTs` is when it began. */
export type Session = InstanceType<Provider["Session"]> & {
  /** How the user signed in. */
  methods?: Method[];
  /** When the user last proved who they are: epoch seconds. Absent if an identity provider didn't say when. */
  provedAt?: number;
  /** The passkey or, hashed, the SSO identity that started the session. */
  credential?: string;
  address?: string;
  userAgent?: string;
  /** Epoch seconds. */
  seenAt?: number;
};

/** Returns for how many more seconds a session is valid that is used now. */
export function sessionLifetime({ iat }: { iat?: number }): number {
  const now = Math.floor(Date.now() / 1000);
  return Math.max(1, Math.min(IDLE_S, (iat ?? now) + SESSION_LIFETIME - now));
}

/** Records when a session was used, and from where. */
export function recordSessionUse(session: Session, ctx: Context): void {
  session.address = ctx.ip;
  session.userAgent = ctx.get("user-agent").slice(0, USER_AGENT_MAX);
  session.seenAt = Math.floor(Date.now() / 1000);
}

/** Records a use whenever the library saves a session, as it does with every authorization request. */
export function recordSessionUseOnSave({ Session }: Provider): void {
  const { save } = Session.prototype;
  Object.assign(Session.prototype, {
    save(this: Session, lifetime: number) {
      if (Provider.ctx) recordSessionUse(this, Provider.ctx);
      return save.call(this, lifetime);
    },
  });
}

/**
 * Replaces a session in one step when its ID changes. The library ends the old one and then stores the new one, even if
 * the old one had ended since it was read, which would sign in again a user who was signed out.
 */
export function replaceSessionsAtOnce({ Session }: Provider): void {
  const { save } = Session.prototype;
  Object.assign(Session.prototype, {
    async save(
      this: Session & { oldId?: string | undefined; replaces?: string | undefined },
      lifetime: number,
    ) {
      this.replaces = this.oldId;
      this.oldId = undefined;
      try {
        return await save.call(this, lifetime);
      } finally {
        this.replaces = undefined;
      }
    },
  });
}

/** Makes `max_age` and the claim `auth_time` about the user's last proof, not about the beginning of the session. */
export function reportLastProof({ Session }: Provider): void {
  Object.assign(Session.prototype, {
    authTime(this: Session) {
      return this.provedAt;
    },
    past(this: Session, age: number) {
      return this.provedAt === undefined || Math.floor(Date.now() / 1000) - this.provedAt > Number(age);
    },
  });
}

/**
 * Ignores the cookie of an ended session. The library would turn it into a session without an account, and store one
 * with every request. The cookie itself stays: a concurrent request may just have created a new session, and clearing
 * its cookie would sign the user out.
 */
export function ignoreEndedSessions({ Session }: Provider): void {
  const { get } = Session;
  Object.assign(Session, {
    async get(ctx: Parameters<typeof get>[0]) {
      const session = await get.call(Session, ctx);
      const hasEnded = session.exp === undefined && !(session as { new?: boolean }).new;
      if (!hasEnded) return session;
      const fresh = new (Session as new () => Session)();
      ctx.oidc?.entity("Session", fresh);
      return fresh;
    },
  });
}
