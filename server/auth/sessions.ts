import type { Context } from "koa";
import type { Provider } from "oidc-provider";
import { isPasskey, type SessionStore } from "../../adapters/accounts/sessions.ts";
import type { Account, AccountStore } from "../../adapters/accounts/store.ts";
import { cookieOptions } from "../http/cookies.ts";
import type { SignedInUser } from "../http/state.ts";
import { recordSessionUse, type Session, sessionLifetime } from "../provider/sessions.ts";
import {
  epochSeconds,
  type FactorProof,
  type SignInProof,
  withFactor,
  withoutFactor,
} from "./sign-in-proof.ts";

// The last use is stored at most once per this many seconds.
const LAST_USE_STEP_S = 120;

/** Browser sessions, shared by the dashboard and the sign-in step of an authorization. */
export type Sessions = {
  /** Returns the signed-in session of a request, if it has one that is still valid. */
  current(ctx: Context): Promise<SignedIn | undefined>;
  /**
   * Signs a user in under a new session ID and invalidates the one that the browser had. Returns false, and leaves the
   * browser signed out, if `isCurrent` does.
   */
  begin(ctx: Context, proof: SignInProof, isCurrent?: () => Promise<boolean>): Promise<boolean>;
  /** Gives the session a new ID, and records a password or a second factor that the user has just proved in it. */
  renew(ctx: Context, factor?: FactorProof): Promise<void>;
  /**
   * Gives the session a new ID without a second factor that the user has just removed from the account, unless the session
   * began with another passkey.
   */
  forgetFactor(ctx: Context, method: "totp" | "passkey"): Promise<void>;
  /** Signs out. `user` is who the request was authenticated as, because the session may have got a new ID since. */
  end(ctx: Context, user: Pick<SignedInUser, "id" | "sessionId">): Promise<void>;
};

/** A session with a user. `loginTs` is when it began: epoch seconds. */
export type SignedIn = Session & { accountId: string; loginTs: number };

/** Creates the sessions on top of oidc-provider's; those in `store` are the same. */
export function createSessions(
  provider: Provider,
  store: Pick<SessionStore, "signOut">,
  base: string,
): Sessions {
  const name = provider.cookieName("session");
  const options = { ...cookieOptions({ base }), path: "/" };

  async function current(ctx: Context): Promise<SignedIn | undefined> {
    const session = (await provider.Session.get(ctx)) as Session;
    if (!session.accountId || !session.loginTs) return undefined;
    if ((session.seenAt ?? 0) + LAST_USE_STEP_S <= epochSeconds()) await save(ctx, session);
    return session as SignedIn;
  }

  /** Saves the session and makes the cookie expire with it. */
  async function save(ctx: Context, session: Session): Promise<void> {
    recordSessionUse(session, ctx);
    await session.save(sessionLifetime(session));
    ctx.cookies.set(name, session.jti, { ...options, expires: new Date(session.exp * 1000) });
  }

  /** Ends a session by its `uid`: oidc-provider would end it by its ID, which a concurrent request may replace. */
  async function end({ accountId, uid }: Pick<Session, "accountId" | "uid">): Promise<void> {
    if (accountId) await store.signOut(accountId, uid);
  }

  return {
    current,

    async begin(ctx, { accountId, methods, amr, provedAt, credential }, isCurrent) {
      const before = await provider.Session.get(ctx);
      const isSame = before.accountId === accountId;
      ctx.state.signIn = { ...ctx.state.signIn, methods, isAgain: isSame };
      if (!isSame) await end(before);
      const session: Session = isSame ? before : new provider.Session();
      // Keeps `uid`, which forms and pending authorizations are bound to: the user's other open pages keep working.
      if (isSame) session.resetIdentifier();
      session.iat = epochSeconds();
      session.loginAccount({ accountId, loginTs: epochSeconds(), amr });
      Object.assign(session, { methods, provedAt, credential });
      await save(ctx, session);
      if (!isCurrent || (await isCurrent())) return true;
      await end(session);
      ctx.cookies.set(name, null, options);
      return false;
    },

    async renew(ctx, factor) {
      const session: Session = await provider.Session.get(ctx);
      session.resetIdentifier();
      session.provedAt = epochSeconds();
      if (factor) {
        const { methods = [], amr = [] } = session;
        Object.assign(session, withFactor({ methods, amr }, factor));
      }
      await save(ctx, session);
    },

    async forgetFactor(ctx, method) {
      const session: Session = await provider.Session.get(ctx);
      const { methods = [], amr = [], credential } = session;
      if (!session.accountId || !methods.includes(method) || isPasskey(credential)) return;
      session.resetIdentifier();
      Object.assign(session, withoutFactor({ methods, amr }, method));
      await save(ctx, session);
    },

    async end(ctx, { id, sessionId }) {
      await store.signOut(id, sessionId);
      ctx.cookies.set(name, null, options);
    },
  };
}

/** Returns the account of the session; undefined if there is none, or the account is disabled. */
export async function signedInAccount(
  ctx: Context,
  { sessions, accounts }: { sessions: Sessions; accounts: Pick<AccountStore, "find"> },
): Promise<Account | undefined> {
  const session = await sessions.current(ctx);
  const account = session && (await accounts.find(session.accountId));
  return account?.disabled ? undefined : account;
}
