import type { Router } from "@koa/router";
import type { Context } from "koa";
import { Problem } from "../../resources/http/problem.ts";
import { validateUsername } from "../credentials/names.ts";
import { validatePassword } from "../credentials/password-rules.ts";
import { RESET_PATH, resetUrl } from "../credentials/reset-links.ts";
import { checkOrigin } from "../http/csrf.ts";
import { formBody, prefersHtml, readInput, textFieldOf } from "../http/request-body.ts";
import { pathOf } from "../operations/operation.ts";
import { requestPasswordReset } from "../operations/sign-in.ts";
import { html } from "../ui/html.ts";
import { alert, describedBy, messagePage, page } from "../ui/page.ts";
import type { AuthOptions } from "./auth-options.ts";
import { limitVisits, redisplayIfRefused, SIGN_IN, showMessage } from "./error-handler.ts";

const PATH = `${RESET_PATH}/:token`;

/** Serves password reset links. The random, single-use token in the URL authenticates the user. */
export function resetLinkRoutes(router: Router, { storage, passwords }: AuthOptions): void {
  const { accounts, organizations } = storage;

  router.get(PATH, async (ctx) => {
    const token = ctx.params.token as string;
    const account = await accounts.findByResetToken(token);
    if (!account) return showInvalidLink(ctx);
    ctx.body = resetPage(token, account.username);
  });

  router.post(PATH, formBody, async (ctx) => {
    const token = ctx.params.token as string;
    const account = await accounts.findByResetToken(token);
    if (!account) return showInvalidLink(ctx);
    const { id, username } = account;
    const password = textFieldOf((await readInput(ctx)).password);
    const names = (await organizations.listByUser(id)).map(({ name }) => name);
    // The link remains valid if the password is rejected, or the service is busy.
    const reset = async () => {
      const error = validatePassword(password, { username, organizations: names });
      if (error) throw new Problem(422, "invalid_password", error);
      const isReset = await accounts.resetPassword(token, await passwords.hash(password), ctx.ip);
      if (!isReset) return showInvalidLink(ctx);
      showMessage(ctx, 200, "Password saved", "You can now sign in with your new password.", SIGN_IN);
    };
    await redisplayIfRefused(ctx, reset, ({ message }) => {
      ctx.body = resetPage(token, username, message);
    });
  });
}

function showInvalidLink(ctx: Context): void {
  const text =
    "Reset links work once and expire after one hour, or earlier if the account’s organizations change. Request a new link.";
  showMessage(ctx, 404, "This link is no longer valid", text, SIGN_IN);
}

function resetPage(token: string, username: string, error?: string): string {
  return page(
    "New password",
    html`<h1>Choose a new password</h1>
<p>For <strong>${username}</strong>. You’ll be signed out everywhere, and the apps you authorized will lose access.</p>
${alert(error, "error")}
<form method="post" action="${resetUrl("", token)}">
<input type="hidden" name="username" value="${username}" autocomplete="username">
<label for="password">New password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required autofocus${describedBy(error, "hint")}>
<p class="hint" id="hint">At least 8 characters. A few random words work well.</p>
<button type="submit">Save password</button>
</form>`,
  );
}

const FORGOT_PATH = pathOf(requestPasswordReset);

const SENT =
  "If the account exists and has a confirmed email address, we’ve sent it a reset link. The link works once and expires in an hour.";

/** The answer and the work before it are the same for every username, so they don't reveal accounts. */
export function forgotPasswordRoutes(router: Router, options: AuthOptions): void {
  const { storage, base } = options;
  router.get(FORGOT_PATH, (ctx) => {
    ctx.body = forgotPasswordPage();
  });

  router.post(FORGOT_PATH, limitVisits(options, "reset"), async (ctx) => {
    const isPage = prefersHtml(ctx);
    if (isPage) checkOrigin(ctx, base);
    const username = textFieldOf((await readInput(ctx)).username);
    if (!username)
      throw new Problem(422, "invalid_username", "Enter your username.", {
        errors: [{ field: "username", message: "is required" }],
      });
    // A text that can't be a username tells nothing about accounts.
    if (!validateUsername(username)) await storage.accounts.requestReset(username);
    ctx.status = 202;
    ctx.body = isPage
      ? messagePage("Check your email", SENT, { href: "/auth/login", text: "Back to sign-in" })
      : { message: SENT };
  });
}

function forgotPasswordPage(): string {
  return page(
    "Reset your password",
    html`<h1>Reset your password</h1>
<p>Enter your username to get a reset link by email. This works if you confirmed an email address on your account page.</p>
<form method="post" action="${FORGOT_PATH}">
<label for="username">Username</label>
<input id="username" name="username" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus>
<button type="submit">Send reset link</button>
</form>
<p class="hint">No confirmed email address? Ask an organization owner or your administrator for a reset link.</p>
<p class="hint"><a href="/auth/login">Back to sign-in</a></p>`,
  );
}
