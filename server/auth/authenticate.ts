import type { Context, Middleware } from "koa";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import { Problem } from "../../resources/http/problem.ts";
import type { Csrf } from "../http/csrf.ts";
import { readInput } from "../http/request-body.ts";
import { checkOrigin, isChange } from "../http/same-origin.ts";
import type { SignedInUser } from "../http/state.ts";
import { isMultiFactor } from "../provider/sessions.ts";
import { SignInRequired } from "./error-handler.ts";
import type { FirstPartyTokens } from "./first-party-tokens.ts";
import { HOME } from "./return-to.ts";
import type { Sessions } from "./sessions.ts";

export type { SignedInUser };

type Options = {
  accounts: AccountStore;
  sessions: Sessions;
  tokens: FirstPartyTokens;
  csrf: Csrf;
  base: string;
};

/**
 * How recent an authentication must be to change how the account is authenticated, in seconds (OWASP ASVS 5.0 V7.5.1).
 */
export const RECENT_S = 10 * 60;

/**
 * Authenticates by a first-party token or a session, and sets `ctx.state.user`. With a session, a change must come from a
 * page of this origin and carry a CSRF token.
 */
export function authenticate(options: Options): Middleware {
  const { csrf, base } = options;
  return async function authenticateUser(ctx, next) {
    const user = await findSignedInUser(ctx, options);
    if (!user) throw new SignInRequired(isChange(ctx) ? HOME : ctx.url, { again: false });
    if (user.means === "session" && isChange(ctx)) {
      checkOrigin(ctx, base);
      const token = ctx.get("x-csrf-token") || (await readInput(ctx)).csrf;
      if (!csrf.isValid(token, csrfPurposeOf(user))) {
        throw new Problem(403, "invalid_csrf_token", "This form has expired. Reload the page and try again.");
      }
    }
    ctx.state.user = user;
    return next();
  };
}

/** Returns the signed-in user unless disabled. A bearer token, even an invalid one, takes precedence over a session. */
export async function findSignedInUser(ctx: Context, options: Options): Promise<SignedInUser | undefined> {
  const token = bearerTokenOf(ctx);
  const found = token === undefined ? await findBySession(ctx, options) : await findByToken(token, options);
  const account = found && (await options.accounts.findWithFactor(found.accountId));
  if (!account || account.disabled) return undefined;
  const { accountId: id, isMultiFactor, signedInAt, ...rest } = found;
  const secondFactor = isMultiFactor ? "proved" : account.hasSecondFactor ? "not_proved" : "none";
  const user: SignedInUser = {
    id,
    username: account.username,
    actor: { id, address: ctx.ip },
    secondFactor,
    // A sign-in without the second factor, from before it was added, is no proof any more.
    signedInAt: secondFactor === "not_proved" ? 0 : signedInAt,
    ...rest,
  };
  return user.means === "token" ? user : { ...user, csrf: options.csrf.token(csrfPurposeOf(user)) };
}

/**
 * Requires a recent authentication. A browser signs in again and returns to `returnTo`.
 * @throws SignInRequired
 */
export function requireRecentSignIn(ctx: Context, returnTo = isChange(ctx) ? HOME : ctx.url): void {
  const { signedInAt } = ctx.state.user;
  if (Date.now() - signedInAt > RECENT_S * 1000) throw new SignInRequired(returnTo, { again: true });
}

type Found = Pick<SignedInUser, "signedInAt" | "means" | "sessionId" | "methods"> & {
  accountId: string;
  isMultiFactor: boolean;
};

async function findBySession(ctx: Context, { sessions }: Options): Promise<Found | undefined> {
  const session = await sessions.current(ctx);
  if (!session) return undefined;
  const { accountId, provedAt = 0, methods = [], uid } = session;
  return {
    accountId,
    signedInAt: provedAt * 1000,
    methods,
    isMultiFactor: isMultiFactor(session),
    means: "session",
    sessionId: uid,
  };
}

async function findByToken(token: string, { tokens }: Options): Promise<Found | undefined> {
  const owner = await tokens.find(token);
  if (!owner) return undefined;
  const { grantId, ...rest } = owner;
  return { ...rest, means: "token", sessionId: grantId };
}

/** Returns the bearer token. Another scheme or an empty token counts as none. */
function bearerTokenOf(ctx: Context): string | undefined {
  return /^Bearer +(\S.*)$/i.exec(ctx.get("authorization"))?.[1];
}

/** Binds CSRF tokens to the session. */
function csrfPurposeOf({ sessionId }: SignedInUser): string {
  return `session ${sessionId}`;
}
