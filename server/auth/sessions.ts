import type { Context } from "koa";
import type { Provider } from "oidc-provider";
import { cookieOptions } from "../provider/cookies.ts";
import { noteUse, type Session, sessionLifetime } from "../provider/sessions.ts";
import type { Proof } from "../sign-in.ts";

// The last use is written down once in so many seconds.
const NOTE_STEP_S = 120;

/** The sessions of browsers: one for the dashboard and for the sign-in step of an authorization. */
export type Sessions = {
  /** The signed-in session of a request, if there is one that has not ended. */
  current(ctx: Context): Promise<SignedIn | undefined>;
  /**
   * Signs a person in with a new session id; what the browser had before is dead. `at`: epoch seconds. False when what
   * was shown for it does not hold any more, after which nobody is signed in.
   */
  begin(ctx: Context, accountId: string, options?: { at?: number; holds?: Proof["holds"] }): Promise<boolean>;
  /** Signs out. */
  end(ctx: Context): Promise<void>;
};

/** A session of somebody. */
export type SignedIn = Session & { accountId: string; loginTs: number };

/** Makes them from the library's own. */
export function createSessions(provider: Provider, base: string): Sessions {
  const name = provider.cookieName("session");
  const options = { ...cookieOptions({ base }), path: "/" };

  async function current(ctx: Context): Promise<SignedIn | undefined> {
    const session = (await provider.Session.get(ctx)) as Session;
    if (!session.accountId || !session.loginTs) return undefined;
    if ((session.seenAt ?? 0) + NOTE_STEP_S <= now()) await save(ctx, session);
    return session as SignedIn;
  }

  /** The cookie lives as long as the session. */
  async function save(ctx: Context, session: Session): Promise<void> {
    noteUse(session, ctx);
    await session.save(sessionLifetime(session));
    ctx.cookies.set(name, session.jti, { ...options, expires: new Date(session.exp * 1000) });
  }

  return {
    current,

    async begin(ctx, accountId, { at = now(), holds } = {}) {
      const before = await provider.Session.get(ctx);
      const isSame = before.accountId === accountId;
      if (before.accountId && !isSame) await before.destroy();
      const session: Session = isSame ? before : new provider.Session();
      // The same person's other pages stay good: their forms and authorizations are bound to `uid`, which is kept.
      if (isSame) session.resetIdentifier();
      session.iat = now();
      session.loginAccount({ accountId, loginTs: at });
      await save(ctx, session);
      if (!holds || (await holds())) return true;
      await session.destroy();
      ctx.cookies.set(name, null, options);
      return false;
    },

    async end(ctx) {
      const session = await provider.Session.get(ctx);
      if (session.accountId) await session.destroy();
      ctx.cookies.set(name, null, options);
    },
  };
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
