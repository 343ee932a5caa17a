import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Account, AccountStore } from "../../adapters/accounts.ts";
import { Problem } from "../../resources/problem.ts";
import type { Settings } from "../config.ts";
import type { Limits } from "../limits.ts";
import { type Proof, REFUSED, type Refusal, type SignIn } from "../sign-in.ts";
import { dashboardSignInPage } from "../views/sign-in.ts";
import type { ShowExternal } from "./external-button.ts";
import { type Input, prefersHtml, readInput, textOf } from "./input.ts";
import { checkOrigin } from "./origin.ts";
import { tooMany } from "./refusals.ts";
import { invitationIn, isOpen } from "./register.ts";
import { safeReturnTo } from "./return-to.ts";
import type { Sessions } from "./sessions.ts";
import type { FirstPartyTokens } from "./tokens.ts";

type Options = {
  settings: Pick<Settings, "REGISTRATION">;
  accounts: AccountStore;
  signIn: SignIn;
  limits: Limits;
  sessions: Sessions;
  tokens: FirstPartyTokens;
  external: ShowExternal;
  base: string;
};

/** `/auth/login` and `/auth/refresh`: with a password, a session for browsers and tokens for programs. */
export function signInRoutes(router: Router, options: Options): void {
  const { settings, accounts, signIn, limits, sessions, tokens, external, base } = options;

  async function show(ctx: Context, input: Input, filled: { username?: string; error?: string } = {}) {
    const returnTo = safeReturnTo(input.return_to);
    const again = input.again === "1";
    ctx.body = dashboardSignInPage({
      returnTo,
      again,
      mayRegister: isOpen(settings, invitationIn(returnTo)),
      external: await external(returnTo, { again }),
      ...filled,
    });
  }

  router.get("/auth/login", async (ctx) => {
    const account = await signedInAccount(ctx, options);
    if (!account) return show(ctx, ctx.query);
    if (ctx.query.again === "1") return show(ctx, ctx.query, { username: account.username });
    ctx.status = 303;
    ctx.redirect(safeReturnTo(ctx.query.return_to));
  });

  router.post("/auth/login", async (ctx) => {
    const input = await readInput(ctx);
    const isPage = prefersHtml(ctx);
    if (isPage) checkOrigin(ctx, base);
    const username = textOf(input.username);
    const result = await signIn(ctx, username, textOf(input.password));
    const refused =
      "error" in result ? result : await (isPage ? goOn(ctx, input, result) : answer(ctx, result));
    if (!refused) return;
    if (!isPage) throw refusal(refused);
    ctx.status = refused.status;
    return show(ctx, input, { username, error: refused.error });
  });

  /** A session, and on to the page that was wanted. */
  async function goOn(ctx: Context, input: Input, proof: Proof): Promise<Refusal | undefined> {
    if (!(await sessions.begin(ctx, proof.accountId, proof))) return REFUSED;
    ctx.status = 303; // RFC 9700 §4.12: never 307
    ctx.redirect(safeReturnTo(input.return_to));
    return undefined;
  }

  /** Tokens. */
  async function answer(ctx: Context, proof: Proof): Promise<Refusal | undefined> {
    const issued = await tokens.issueFor(proof, ctx.ip);
    if (!issued) return REFUSED;
    const { accountId: id } = proof;
    ctx.body = { user: { id, username: (await accounts.find(id))?.username }, ...issued };
    return undefined;
  }

  router.post("/auth/refresh", async (ctx) => {
    const { refresh_token } = await readInput(ctx);
    const wait = await limits.visit("refresh", ctx.ip);
    if (wait) throw tooMany(wait);
    const answer = await tokens.refresh(textOf(refresh_token));
    if (!answer) {
      throw new Problem(401, "invalid_grant", "The refresh token is unknown, expired, used or revoked.", {
        headers: { "WWW-Authenticate": "Bearer" },
      });
    }
    ctx.body = answer;
  });
}

/** Returns the account of the session; undefined if there is none, or the account is disabled. */
export async function signedInAccount(
  ctx: Context,
  { sessions, accounts }: Pick<Options, "sessions" | "accounts">,
): Promise<Account | undefined> {
  const session = await sessions.current(ctx);
  const account = session && (await accounts.find(session.accountId));
  return account?.disabled ? undefined : account;
}

/** What a program is told: a wrong password is a lack of authentication. */
function refusal({ error, status }: { error: string; status: number }): Problem {
  if (status === 429) return new Problem(429, "too_many_requests", error);
  if (status === 503) return new Problem(503, "busy", error);
  // RFC 9110 §11.6.1: a 401 says how to authenticate
  return new Problem(401, "invalid_credentials", error, { headers: { "WWW-Authenticate": "Bearer" } });
}
