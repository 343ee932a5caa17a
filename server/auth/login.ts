import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import { Problem } from "../../resources/http/problem.ts";
import type { Settings } from "../config.ts";
import { type Input, prefersHtml, readInput, textFieldOf } from "../http/request-body.ts";
import { checkOrigin } from "../http/same-origin.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { tooManyRequests } from "./error-handler.ts";
import type { FirstPartyTokens } from "./first-party-tokens.ts";
import { dashboardSignInPage } from "./login-page.ts";
import { invitationIn, isRegistrationOpen } from "./register.ts";
import { safeReturnTo } from "./return-to.ts";
import { type Sessions, signedInAccount } from "./sessions.ts";
import type { ShowSsoButton } from "./sso/button.ts";
import {
  INCORRECT_CREDENTIALS,
  type LoginError,
  type PasswordProof,
  type VerifyPassword,
} from "./verify-password.ts";

type Options = {
  settings: Pick<Settings, "REGISTRATION">;
  accounts: AccountStore;
  signIn: VerifyPassword;
  authenticationLimits: AuthenticationLimits;
  sessions: Sessions;
  tokens: FirstPartyTokens;
  external: ShowSsoButton;
  base: string;
};

/** Adds `/auth/login`, which starts a session in a browser and issues tokens to a program, and `/auth/refresh`. */
export function loginRoutes(router: Router, options: Options): void {
  const { settings, accounts, signIn, authenticationLimits, sessions, tokens, external, base } = options;

  async function showForm(ctx: Context, input: Input, filled: { username?: string; error?: string } = {}) {
    const returnTo = safeReturnTo(input.return_to);
    const again = input.again === "1";
    ctx.body = dashboardSignInPage({
      returnTo,
      again,
      mayRegister: isRegistrationOpen(settings, invitationIn(returnTo)),
      external: await external(returnTo, { again }),
      ...filled,
    });
  }

  router.get("/auth/login", async (ctx) => {
    const account = await signedInAccount(ctx, options);
    if (!account) return showForm(ctx, ctx.query);
    if (ctx.query.again === "1") return showForm(ctx, ctx.query, { username: account.username });
    ctx.status = 303;
    ctx.redirect(safeReturnTo(ctx.query.return_to));
  });

  router.post("/auth/login", async (ctx) => {
    const input = await readInput(ctx);
    const isPage = prefersHtml(ctx);
    if (isPage) checkOrigin(ctx, base);
    const username = textFieldOf(input.username);
    const result = await signIn(ctx, username, textFieldOf(input.password));
    const failure =
      "error" in result
        ? result
        : await (isPage ? startSession(ctx, input, result) : issueTokens(ctx, result));
    if (!failure) return;
    if (!isPage) throw toProblem(failure);
    ctx.status = failure.status;
    return showForm(ctx, input, { username, error: failure.error });
  });

  async function startSession(
    ctx: Context,
    input: Input,
    proof: PasswordProof,
  ): Promise<LoginError | undefined> {
    if (!(await sessions.begin(ctx, proof.accountId, proof))) return INCORRECT_CREDENTIALS;
    ctx.status = 303; // RFC 9700 §4.12: never 307
    ctx.redirect(safeReturnTo(input.return_to));
    return undefined;
  }

  async function issueTokens(ctx: Context, proof: PasswordProof): Promise<LoginError | undefined> {
    const issued = await tokens.issueFor(proof, ctx.ip);
    if (!issued) return INCORRECT_CREDENTIALS;
    const { accountId: id } = proof;
    ctx.body = { user: { id, username: (await accounts.find(id))?.username }, ...issued };
    return undefined;
  }

  router.post("/auth/refresh", async (ctx) => {
    const { refresh_token } = await readInput(ctx);
    const wait = await authenticationLimits.visit("refresh", ctx.ip);
    if (wait) throw tooManyRequests(wait);
    const issued = await tokens.refresh(textFieldOf(refresh_token));
    if (!issued) {
      throw new Problem(
        401,
        "invalid_grant",
        "The refresh token is unknown, expired, revoked or already used.",
        {
          headers: { "WWW-Authenticate": "Bearer" },
        },
      );
    }
    ctx.body = issued;
  });
}

/** Returns the error for a program: a wrong password is a 401. */
function toProblem({ error, status }: LoginError): Problem {
  if (status === 429) return new Problem(429, "too_many_requests", error);
  if (status === 503) return new Problem(503, "busy", error);
  // RFC 9110 §11.6.1: a 401 names the authentication scheme
  return new Problem(401, "invalid_credentials", error, { headers: { "WWW-Authenticate": "Bearer" } });
}
