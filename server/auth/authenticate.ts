import type { Context, Middleware } from "koa";
import type { AccountStore } from "../../adapters/accounts.ts";
import type { By } from "../../resources/events.ts";
import { Problem } from "../../resources/problem.ts";
import type { Csrf } from "../csrf.ts";
import { readInput } from "./input.ts";
import { checkOrigin, isChange } from "./origin.ts";
import { SignInRequired } from "./refusals.ts";
import { HOME } from "./return-to.ts";
import type { Sessions } from "./sessions.ts";
import type { FirstPartyTokens } from "./tokens.ts";

/** Who is signed in, and how. Found in `ctx.state.person`. */
export type Person = {
  id: string;
  username: string;
  /** When he or she last showed who it is; epoch milliseconds. */
  signedInAt: number;
  means: "session" | "token";
  /** What a change that the person makes is written down with. */
  by: By;
  /** What a form has to carry in the field `csrf`; only with a session. */
  csrf?: string;
  /** The session, or the grant behind the token. */
  signInId: string;
};

type Options = {
  accounts: AccountStore;
  sessions: Sessions;
  tokens: FirstPartyTokens;
  csrf: Csrf;
  base: string;
};

/** OWASP ASVS 5.0 V7.5.1: what would hand the account over needs a sign-in that is no older, in seconds. */
export const RECENT_S = 10 * 60;

/** Who asks: by a first-party token, or by a session whose changes are checked to come from our own pages. */
export function identify(options: Options): Middleware {
  const { csrf, base } = options;
  return async function identifyPerson(ctx, next) {
    const person = await findPerson(ctx, options);
    if (!person) throw new SignInRequired(isChange(ctx) ? HOME : ctx.url, { again: false });
    if (person.means === "session" && isChange(ctx)) {
      checkOrigin(ctx, base);
      const token = ctx.get("x-csrf-token") || (await readInput(ctx)).csrf;
      if (!csrf.isValid(token, formsOf(person))) {
        throw new Problem(403, "invalid_csrf_token", "The form is no longer good: open the page again.");
      }
    }
    ctx.state.person = person;
    return next();
  };
}

/** Whoever is signed in; nobody who was disabled since. A bearer token decides alone, good or bad. */
export async function findPerson(ctx: Context, options: Options): Promise<Person | undefined> {
  const token = bearerOf(ctx);
  const found = token === undefined ? await bySession(ctx, options) : await byToken(token, options);
  const account = found && (await options.accounts.find(found.accountId));
  if (!account || account.disabled) return undefined;
  const { accountId: id, ...rest } = found;
  const person: Person = { id, username: account.username, by: { actor: id, address: ctx.ip }, ...rest };
  return person.means === "token" ? person : { ...person, csrf: options.csrf.token(formsOf(person)) };
}

/**
 * Refuses what needs a recent sign-in; in a browser the person signs in again and comes back to `returnTo`.
 * @throws SignInRequired
 */
export function requireRecentSignIn(ctx: Context, returnTo = isChange(ctx) ? HOME : ctx.url): void {
  const { signedInAt } = ctx.state.person as Person;
  if (Date.now() - signedInAt > RECENT_S * 1000) throw new SignInRequired(returnTo, { again: true });
}

type Found = Pick<Person, "signedInAt" | "means" | "signInId"> & { accountId: string };

async function bySession(ctx: Context, { sessions }: Options): Promise<Found | undefined> {
  const session = await sessions.current(ctx);
  if (!session) return undefined;
  const { accountId, loginTs, uid } = session;
  return { accountId, signedInAt: loginTs * 1000, means: "session", signInId: uid };
}

async function byToken(token: string, { tokens }: Options): Promise<Found | undefined> {
  const owner = await tokens.find(token);
  if (!owner) return undefined;
  const { accountId, signedInAt, grantId } = owner;
  return { accountId, signedInAt, means: "token", signInId: grantId };
}

/** Another scheme and an empty token count as none. */
function bearerOf(ctx: Context): string | undefined {
  return /^Bearer +(\S.*)$/i.exec(ctx.get("authorization"))?.[1];
}

/** Form tokens are for one session. */
function formsOf({ signInId }: Person): string {
  return `session ${signInId}`;
}
