import type { Router } from "@koa/router";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import { Problem } from "../../resources/http/problem.ts";
import { validateUsername } from "../credentials/usernames.ts";
import { prefersHtml, readInput, textFieldOf } from "../http/request-body.ts";
import { checkOrigin } from "../http/same-origin.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { messagePage } from "../ui/page.ts";
import { tooManyRequests } from "./error-handler.ts";
import { forgotPasswordPage } from "./forgot-password-page.ts";

/** The path at which users request a password reset by email. */
export const FORGOT_PATH = "/auth/forgot-password";

type Options = {
  accounts: Pick<AccountStore, "requestReset">;
  authenticationLimits: AuthenticationLimits;
  base: string;
};

const SENT =
  "If the account exists and has a confirmed email address, we’ve sent it a reset link. The link works once and expires in an hour.";

/**
 * Adds the routes that email a password-reset link. The answer and the work before it are the same for every username, so
 * they don't reveal accounts.
 */
export function forgotPasswordRoutes(
  router: Router,
  { accounts, authenticationLimits, base }: Options,
): void {
  router.get(FORGOT_PATH, (ctx) => {
    ctx.body = forgotPasswordPage();
  });

  router.post(FORGOT_PATH, async (ctx) => {
    const isPage = prefersHtml(ctx);
    if (isPage) checkOrigin(ctx, base);
    const username = textFieldOf((await readInput(ctx)).username);
    if (!username) throw missingUsername();
    const wait = await authenticationLimits.visit("reset", ctx.ip);
    if (wait) throw tooManyRequests(wait);
    // A text that can't be a username tells nothing about accounts.
    if (!validateUsername(username)) await accounts.requestReset(username);
    ctx.status = 202;
    ctx.body = isPage
      ? messagePage("Check your email", SENT, { href: "/auth/login", text: "Back to sign-in" })
      : { message: SENT };
  });
}

function missingUsername(): Problem {
  return new Problem(422, "invalid_username", "Enter your username.", {
    errors: [{ field: "username", message: "is required" }],
  });
}
