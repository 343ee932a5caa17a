import { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import bodyParser from "koa-bodyparser";
import type { AccountStore } from "../adapters/accounts.ts";
import { type Passwords, refusePassword } from "./passwords.ts";
import { messagePage, type Way } from "./views/page.ts";
import { resetPage } from "./views/reset.ts";

/** How long a link to set a new password is good. */
export const RESET_LINK_MS = 60 * 60 * 1000;

const PATH = "/auth/reset-password/:token";
const TO_SIGN_IN: Way = { href: "/auth/login", text: "Sign in" };
const form = bodyParser({ enableTypes: ["form"], formLimit: "16kb" });

/** Where a new password is set. The link is the proof: it is random, good once, and for one person. */
export function passwordReset(accounts: AccountStore, passwords: Passwords): Middleware {
  const router = new Router({ sensitive: true, strict: true });
  const action = (ctx: Context) => `/auth/reset-password/${ctx.params.token}`;

  router.get(PATH, async (ctx) => {
    ctx.set("Cache-Control", "no-store");
    const account = await accounts.findByResetToken(ctx.params.token as string);
    if (!account) return linkIsOver(ctx);
    ctx.body = resetPage({ action: action(ctx), username: account.username });
  });

  router.post(PATH, form, async (ctx) => {
    ctx.set("Cache-Control", "no-store");
    const token = ctx.params.token as string;
    const account = await accounts.findByResetToken(token);
    if (!account) return linkIsOver(ctx);
    const { password } = (ctx.request.body ?? {}) as { password?: unknown };
    const given = typeof password === "string" ? password : "";
    const error = refusePassword(given, account.username);
    if (error) {
      ctx.status = 422;
      ctx.body = resetPage({ action: action(ctx), username: account.username, error });
      return;
    }
    if (!(await accounts.resetPassword(token, await passwords.hash(given), ctx.ip))) return linkIsOver(ctx);
    ctx.body = messagePage("Password saved", "You can sign in with the new password now.", TO_SIGN_IN);
  });

  return router.routes() as unknown as Middleware;
}

/** The address for a token. */
export function resetUrl(base: string, token: string): string {
  return `${base}/auth/reset-password/${token}`;
}

function linkIsOver(ctx: Context): void {
  ctx.status = 404;
  ctx.body = messagePage(
    "This link is no longer valid",
    "Reset links work once and expire after one hour, or earlier if the account's organizations change. Ask for a new one.",
  );
}
