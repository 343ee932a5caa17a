import type { Context } from "koa";
import { Provider } from "oidc-provider";
import { SESSION_LIFETIME } from "../../settings/token-lifetimes.ts";

/**
 * Seam: how sessions are stored and found.
 * No option: oidc-provider ends a session and then stores it under its new id, even if it had ended since it was read,
 * which would sign in again a user who was signed out. It makes a session without an account of an ended one, and
 * replaces the cookie. It knows only when a session began, not when the user last proved who they are.
 * Upstream would have to offer: an adapter method that renames a session, an option for ended sessions, and a time of
 * authentication that can be absent.
 */

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

type Saved = Session & { oldId?: string | undefined; replaces?: string | undefined };
type SessionModel = (new () => Session) & {
  prototype: Saved & { save(lifetime: number): Promise<string> };
  get(ctx: object): Promise<Session & { new?: boolean }>;
};

/** Overrides the methods of the model. */
export function changeSessions(provider: Provider): void {
  const model = provider.Session as unknown as SessionModel;
  const { get, prototype } = model;
  const { save } = prototype;
  Object.assign(prototype, {
    /** Records the use, as with every authorization request, and replaces the session in one step if its id changes. */
    async save(this: Saved, lifetime: number) {
      if (Provider.ctx) recordSessionUse(this, Provider.ctx);
      this.replaces = this.oldId;
      this.oldId = undefined;
      try {
        return await save.call(this, lifetime);
      } finally {
        this.replaces = undefined;
      }
    },
    /** Makes the claim `auth_time` about the user's last proof. */
    authTime(this: Saved) {
      return this.provedAt;
    },
    /** Makes `max_age` about the user's last proof. */
    past(this: Saved, age: number) {
      return this.provedAt === undefined || epochSeconds() - this.provedAt > Number(age);
    },
  });
  /**
   * Ignores the cookie of an ended session. It stays: a concurrent request may just have created a new session, and
   * clearing its cookie would sign the user out.
   */
  model.get = async function getActive(
    ctx: object & { oidc?: { entity(name: string, value: object): void } },
  ) {
    const session = await get.call(model, ctx);
    const hasEnded = session.exp === undefined && !session.new;
    if (!hasEnded) return session;
    const fresh = new model();
    ctx.oidc?.entity("Session", fresh);
    return fresh;
  };
}
