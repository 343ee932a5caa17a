import type { Context } from "koa";
import { Provider } from "oidc-provider";

const DAY_S = 24 * 3600;
// As much as the list of sessions shows; a header may have 16 KB.
const USER_AGENT_MAX = 255;
// OWASP ASVS 5.0 V7.3.1 and V7.3.2: a session that nobody uses ends, and so does one that is used all the time.
const IDLE_S = 7 * DAY_S;
const ABSOLUTE_S = 30 * DAY_S;

/** The session of a browser, with what the list of sessions shows of it. */
export type Session = InstanceType<Provider["Session"]> & {
  address?: string;
  userAgent?: string;
  /** Epoch seconds. */
  seenAt?: number;
};

/** How many seconds a session lives on that is used now. */
export function sessionLifetime({ iat }: { iat?: number }): number {
  const now = Math.floor(Date.now() / 1000);
  return Math.max(1, Math.min(IDLE_S, (iat ?? now) + ABSOLUTE_S - now));
}

/** Notes in a session when it was used and from where. */
export function noteUse(session: Session, ctx: Context): void {
  session.address = ctx.ip;
  session.userAgent = ctx.get("user-agent").slice(0, USER_AGENT_MAX);
  session.seenAt = Math.floor(Date.now() / 1000);
}

/** The library saves a session with every authorization request: that is a use, too. */
export function noteUseOnSave({ Session }: Provider): void {
  const { save } = Session.prototype;
  Object.assign(Session.prototype, {
    save(this: Session, lifetime: number) {
      if (Provider.ctx) noteUse(this, Provider.ctx);
      return save.call(this, lifetime);
    },
  });
}

/**
 * Treats the cookie of an ended session as none. The library would make a session without an account of it, and store
 * one with every request. The cookie itself stays: of two requests at the same time, one may just have been given a new
 * session, and clearing its cookie would sign the user out.
 */
export function ignoreDeadSessions({ Session }: Provider): void {
  const { get } = Session;
  Object.assign(Session, {
    async get(ctx: Parameters<typeof get>[0]) {
      const session = await get.call(Session, ctx);
      const isDead = session.exp === undefined && !(session as { new?: boolean }).new;
      if (!isDead) return session;
      const fresh = new (Session as new () => Session)();
      ctx.oidc?.entity("Session", fresh);
      return fresh;
    },
  });
}
