import type { Context } from "koa";
import type { Provider } from "oidc-provider";
import { isPasskey, type SessionStore } from "../../adapters/accounts/sessions.ts";
import type { Account, AccountStore } from "../../adapters/accounts/store.ts";
import { cookieOptions } from "../http/cookies.ts";
import type { SignedInUser } from "../http/state.ts";
import {
  epochSeconds,
  recordSessionUse,
  type Session,
  sessionLifetime,
} from "../provider/seams/session-model.ts";
import { type FactorProof, type SignInProof, withFactor, withoutFactor } from "./sign-in-proof.ts";

// The last use is stored at most once per this many seconds.
const LAST_USE_STEP_S = 120;

/** `loginTs` is when the session began, in epoch seconds. */
export type SignedIn = Session & { accountId: string; loginTs: number };

export type Sessions = ReturnType<typeof createSessions>;

/** The stored sessions are the same as oidc-provider's. */
export function createSessions(
  provider: Provider,
  { accounts, sessions: store }: { accounts: Pick<AccountStore, "find">; sessions: SessionStore },
  base: string,
) {
  const name = provider.cookieName("session");
  const options = { ...cookieOptions({ base }), path: "/" };

  async function current(ctx: Context): Promise<SignedIn | undefined> {
    const session = (await provider.Session.get(ctx)) as Session;
    if (!session.accountId || !session.loginTs) return undefined;
    if ((session.seenAt ?? 0) + LAST_USE_STEP_S <= epochSeconds()) await save(ctx, session);
    return session as SignedIn;
  }

  async function save(ctx: Context, session: Session): Promise<void> {
    recordSessionUse(session, ctx);
    await session.save(sessionLifetime(session));
    ctx.cookies.set(name, session.jti, { ...options, expires: new Date(session.exp * 1000) });
  }

  /** oidc-provider would end it by its ID, which a concurrent request may replace. */
  async function end({ accountId, uid }: Pick<Session, "accountId" | "uid">): Promise<void> {
    if (accountId) await store.signOut(accountId, uid);
  }

  return {
    current,

    /** Resolves to the account of the signed-in user, unless it is disabled. */
    async account(ctx: Context): Promise<Account | undefined> {
      const session = await current(ctx);
      const account = session && (await accounts.find(session.accountId));
      return account?.disabled ? undefined : account;
    },

    /** Invalidates the browser's old session. Returns false, signed out, if `isCurrent` does. */
    async begin(ctx: Context, proof: SignInProof, isCurrent?: () => Promise<boolean>): Promise<boolean> {
      const { accountId, methods, amr, provedAt, credential } = proof;
      const before = await provider.Session.get(ctx);
      const isSame = before.accountId === accountId;
      ctx.state.signIn = { ...ctx.state.signIn, methods, isAgain: isSame };
      if (!isSame) await end(before);
      const session: Session = isSame ? before : new provider.Session();
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

    /** Gives the session a new ID. */
    async renew(ctx: Context, factor?: FactorProof): Promise<void> {
      const session: Session = await provider.Session.get(ctx);
      session.resetIdentifier();
      session.provedAt = epochSeconds();
      if (factor) {
        const { methods = [], amr = [] } = session;
        Object.assign(session, withFactor({ methods, amr }, factor));
      }
      await save(ctx, session);
    },

    /** Removes a second factor from the session, which gets a new ID, unless it began with another passkey. */
    async forgetFactor(ctx: Context, method: "totp" | "passkey"): Promise<void> {
      const session: Session = await provider.Session.get(ctx);
      const { methods = [], amr = [], credential } = session;
      if (!session.accountId || !methods.includes(method) || isPasskey(credential)) return;
      session.resetIdentifier();
      Object.assign(session, withoutFactor({ methods, amr }, method));
      await save(ctx, session);
    },

    /** `user` is who the request was authenticated as, because the session may have got a new ID since. */
    async end(ctx: Context, { id, sessionId }: Pick<SignedInUser, "id" | "sessionId">): Promise<void> {
      await store.signOut(id, sessionId);
      ctx.cookies.set(name, null, options);
    },
  };
}
