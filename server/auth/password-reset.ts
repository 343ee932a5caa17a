import { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { routesOf } from "../../resources/http/methods.ts";
import { Problem } from "../../resources/http/problem.ts";
import { validatePassword } from "../credentials/password-rules.ts";
import type { Passwords } from "../credentials/passwords.ts";
import { RESET_PATH, resetUrl } from "../credentials/reset-links.ts";
import { formBody } from "../http/request-body.ts";
import { html } from "../ui/html.ts";
import { alert, describedBy, messagePage, type PageLink, page } from "../ui/page.ts";
import { hashPassword } from "./schemas.ts";

const PATH = `${RESET_PATH}/:token`;
const SIGN_IN: PageLink = { href: "/auth/login", text: "Sign in" };

/** Serves password reset links. The random, single-use token in the URL authenticates the user. */
export function passwordReset(
  { accounts, organizations }: Pick<Storage, "accounts" | "organizations">,
  passwords: Passwords,
): Middleware[] {
  const router = new Router({ sensitive: true, strict: true });
  const action = (ctx: Context) => resetUrl("", ctx.params.token as string);

  router.get(PATH, async (ctx) => {
    ctx.set("Cache-Control", "no-store");
    const account = await accounts.findByResetToken(ctx.params.token as string);
    if (!account) return showInvalidLink(ctx);
    ctx.body = resetPage({ action: action(ctx), username: account.username });
  });

  router.post(PATH, formBody, async (ctx) => {
    ctx.set("Cache-Control", "no-store");
    const token = ctx.params.token as string;
    const account = await accounts.findByResetToken(token);
    if (!account) return showInvalidLink(ctx);
    const { password } = (ctx.request.body ?? {}) as { password?: unknown };
    const newPassword = typeof password === "string" ? password : "";
    const names = (await organizations.listByUser(account.id)).map(({ name }) => name);
    const showForm = (status: number, error: string) => {
      ctx.status = status;
      ctx.body = resetPage({ action: action(ctx), username: account.username, error });
    };
    const error = validatePassword(newPassword, { username: account.username, organizations: names });
    if (error) return showForm(422, error);
    let hash: string;
    try {
      hash = await hashPassword(passwords, newPassword);
    } catch (busy) {
      if (!(busy instanceof Problem)) throw busy;
      ctx.set(busy.headers);
      return showForm(busy.status, busy.message); // the link remains valid
    }
    if (!(await accounts.resetPassword(token, hash, ctx.ip))) return showInvalidLink(ctx);
    ctx.body = messagePage("Password saved", "You can now sign in with your new password.", SIGN_IN);
  });

  return routesOf(router);
}

function showInvalidLink(ctx: Context): void {
  ctx.status = 404;
  ctx.body = messagePage(
    "This link is no longer valid",
    "Reset links work once and expire after one hour, or earlier if the account's organizations change. Request a new link.",
  );
}

/** Renders the form that a password reset link opens. */
function resetPage({
  action,
  username,
  error,
}: {
  action: string;
  username: string;
  error?: string;
}): string {
  return page(
    "New password",
    html`<h1>Choose a new password</h1>
<p>For <strong>${username}</strong>. You will be signed out everywhere, and apps you authorized lose access.</p>
${alert(error, "error")}
<form method="post" action="${action}">
<input type="hidden" name="username" value="${username}" autocomplete="username">
<label for="password">New password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required autofocus${describedBy(error, "hint")}>
<p class="hint" id="hint">At least 8 characters. A few random words work well.</p>
<button type="submit">Save password</button>
</form>`,
  );
}
