import type { Router } from "@koa/router";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import { Problem } from "../../resources/http/problem.ts";
import { validateUsername } from "../credentials/usernames.ts";
import { prefersHtml, readInput, textFieldOf } from "../http/request-body.ts";
import { checkOrigin } from "../http/same-origin.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { html } from "../ui/html.ts";
import { messagePage, page } from "../ui/page.ts";
import { tooManyRequests } from "./error-handler.ts";

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

/** Renders the form that requests a password reset by email. */
function forgotPasswordPage(): string {
  return page(
    "Reset your password",
    html`<h1>Reset your password</h1>
<p>Enter your username to get a reset link by email. This works if you confirmed an email address on your account page.</p>
<form method="post" action="/auth/forgot-password">
<label for="username">Username</label>
<input id="username" name="username" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus>
<button type="submit">Send reset link</button>
</form>
<p class="hint">No email address? Ask an organization owner or your administrator for a reset link.</p>
<p class="hint"><a href="/auth/login">Back to sign-in</a></p>`,
  );
}
