import type { Context } from "koa";
import { Provider } from "oidc-provider";

const DAY_S = 24 * 3600;
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
  session.userAgent = ctx.get("user-agent");
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
