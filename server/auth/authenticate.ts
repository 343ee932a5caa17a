import type { Context, Middleware } from "koa";
import { createWorkQueue } from "../../resources/work-queue.ts";
import { checkCsrf, checkOrigin, isChange } from "../http/csrf.ts";
import { HOME } from "../http/redirects.ts";
import { readInput, uploadMax } from "../http/request-body.ts";
import type { SignedInUser } from "../http/state.ts";
import { isMultiFactor } from "../provider/seams/session-model.ts";
import type { AuthOptions } from "./auth-options.ts";
import { SignInRequired } from "./error-handler.ts";

type Options = Pick<AuthOptions, "storage" | "sessions" | "tokens" | "csrf" | "base">;

const uploads = createWorkQueue({
  maxWaiting: 1,
  tooMany: "You have too many uploads in progress. Try again when one has finished.",
});

/** How recent an authentication must be to change credentials, in seconds (OWASP ASVS 5.0 V7.5.1). */
export const RECENT_S = 10 * 60;

/** Sets `ctx.state.user`. With a session, a change must come from a page of this origin and carry a CSRF token. */
export function authenticate(options: Options): Middleware {
  const { csrf, base } = options;
  return async function authenticateUser(ctx, next) {
    const user = await findSignedInUser(ctx, options);
    if (!user) throw new SignInRequired(isChange(ctx) ? HOME : ctx.url, { again: false });
    const proceed = async () => {
      if (user.means === "session" && isChange(ctx)) {
        checkOrigin(ctx, base);
        const token = ctx.get("x-csrf-token") || (await readInput(ctx)).csrf;
        checkCsrf(csrf, token, csrfPurposeOf(user));
      }
      ctx.state.user = user;
      return next();
    };
    // An upload is in memory as a whole, so a user has one at a time.
    return uploadMax(ctx) === undefined ? proceed() : uploads(user.id, proceed);
  };
}

/** A bearer token, even an invalid one, takes precedence over a session. */
async function findSignedInUser(ctx: Context, options: Options): Promise<SignedInUser | undefined> {
  const token = /^Bearer +(\S.*)$/i.exec(ctx.get("authorization"))?.[1];
  const found = token === undefined ? await findBySession(ctx, options) : await options.tokens.find(token);
  const account = found && (await options.storage.accounts.findWithFactor(found.accountId));
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

/** Throws SignInRequired unless the user signed in recently; a browser then returns to `returnTo`. */
export function requireRecentSignIn(ctx: Context, returnTo = isChange(ctx) ? HOME : ctx.url): void {
  const { signedInAt } = ctx.state.user;
  if (Date.now() - signedInAt > RECENT_S * 1000) throw new SignInRequired(returnTo, { again: true });
}

async function findBySession(ctx: Context, { sessions }: Options) {
  const session = await sessions.current(ctx);
  if (!session) return undefined;
  const { accountId, provedAt = 0, methods = [], uid } = session;
  return {
    accountId,
    signedInAt: provedAt * 1000,
    methods,
    isMultiFactor: isMultiFactor(session),
    means: "session" as const,
    sessionId: uid,
  };
}

function csrfPurposeOf({ sessionId }: SignedInUser): string {
  return `session ${sessionId}`;
}
