import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { hashPassword, passwordChangeSchema } from "../../auth/schemas.ts";
import type { Sessions } from "../../auth/sessions.ts";
import type { IdentityProvider } from "../../auth/sso/identity-provider.ts";
import type { Transactions } from "../../auth/sso/transactions.ts";
import type { VerifyPassword } from "../../auth/verify-password.ts";
import type { Passwords } from "../../credentials/passwords.ts";
import { prefersHtml, readInput, textFieldOf } from "../../http/request-body.ts";
import { signedInUserOf } from "../access.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { exportOf, showAccount, showSession } from "./export.ts";
import { identityRoutes } from "./identities.ts";
import { accountPage } from "./page.ts";

/** The dependencies of the account routes. */
export type AccountOptions = {
  storage: Pick<
    Storage,
    "accounts" | "identities" | "sessions" | "accountDeletions" | "organizations" | "grants"
  >;
  passwords: Passwords;
  signIn: VerifyPassword;
  sessions: Sessions;
  identityProvider: IdentityProvider | undefined;
  transactions: Transactions;
};

const PATH = "/dashboard/account";

/** Adds the routes of the user's own account: sessions, password, linked identities, data export and deletion. */
export function accountRoutes(router: Router, options: AccountOptions): void {
  const { storage, identityProvider: provider, transactions } = options;

  const show: Show = async (ctx, error) => {
    const user = signedInUserOf(ctx);
    const account = await showAccount(storage, user);
    ctx.state.memberships = account.organizations;
    const body = accountPage({ account, csrf: user.csrf, provider: provider?.name });
    showPage(ctx, { title: "Your account", error }, body);
  };

  router.get(PATH, async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    ctx.body = await showAccount(storage, signedInUserOf(ctx));
  });
  router.get(`${PATH}/export`, async (ctx) => {
    ctx.set("Content-Disposition", 'attachment; filename="linkgate-account.json"');
    ctx.body = await exportOf(storage, signedInUserOf(ctx));
  });

  identityRoutes(router, { identities: storage.identities, provider, transactions, show });
  addPasswordRoute(router, options, show);
  addSessionRoutes(router, options);
  addDeletionRoutes(router, options, show);
}

function addPasswordRoute(router: Router, options: AccountOptions, show: Show): void {
  const { storage, passwords, sessions } = options;

  router.post(`${PATH}/password`, redisplayForm(show), async (ctx) => {
    const user = signedInUserOf(ctx);
    const input = await readInput(ctx);
    const account = await storage.accounts.find(user.id);
    // SSO users without a password have none to enter.
    if (account?.passwordHash === null) requireRecentSignIn(ctx, PATH);
    else await assertPassword(ctx, textFieldOf(input.current_password), options);
    const { new_password } = validate(passwordChangeSchema(user.username), input);
    const currentHash = account?.passwordHash ?? null;
    const newHash = await hashPassword(passwords, new_password);
    // A concurrent password change wins: it may have been made to lock this session out.
    if (!(await storage.sessions.changePassword({ currentHash, newHash }, user.sessionId, user.actor))) {
      throw wrongPassword();
    }
    if (user.means === "session") await sessions.begin(ctx, user.id);
    respondToChange(ctx, { to: PATH, done: "password-changed" });
  });
}

function addSessionRoutes(router: Router, { storage }: AccountOptions): void {
  const { sessions } = storage;

  router.get(`${PATH}/sessions`, async (ctx) => {
    if (prefersHtml(ctx)) return ctx.redirect(PATH);
    const user = signedInUserOf(ctx);
    ctx.body = { data: (await sessions.listByUser(user.id)).map((session) => showSession(session, user)) };
  });

  const revokeOthers = async (ctx: Context) => {
    const { sessionId, actor } = signedInUserOf(ctx);
    await sessions.endOthers(sessionId, actor);
    respondToChange(ctx, { to: PATH, done: "sessions-ended" });
  };
  router.delete(`${PATH}/sessions`, revokeOthers);
  router.post(`${PATH}/sessions/delete`, revokeOthers);

  const revoke = async (ctx: Context) => {
    const isRevoked = await sessions.end(ctx.params.id as string, signedInUserOf(ctx).actor);
    if (!isRevoked) throw notFound("session");
    respondToChange(ctx, { to: PATH, done: "session-ended" });
  };
  router.delete(`${PATH}/sessions/:id`, revoke);
  router.post(`${PATH}/sessions/:id/delete`, revoke);
}

function addDeletionRoutes(router: Router, options: AccountOptions, show: Show): void {
  const { storage, sessions } = options;

  const deleteAccount = async (ctx: Context) => {
    const password = textFieldOf((await readInput(ctx)).password);
    if (password) await assertPassword(ctx, password, options);
    else requireRecentSignIn(ctx, PATH);
    const { actor, means } = signedInUserOf(ctx);
    const withoutOtherOwner = await storage.accountDeletions.deleteAccount(actor);
    if (withoutOtherOwner.length > 0) throw lastOwner(withoutOtherOwner);
    if (means === "session") await sessions.end(ctx);
    respondToChange(ctx, { to: "/auth/login" });
  };
  router.delete(PATH, deleteAccount);
  router.post(`${PATH}/delete`, redisplayForm(show), deleteAccount);
}

/**
 * Checks the password of the signed-in user. Wrong guesses count toward the same limits as on the sign-in page.
 * @throws Problem
 */
async function assertPassword(ctx: Context, password: string, { signIn }: Pick<AccountOptions, "signIn">) {
  const result = await signIn(ctx, signedInUserOf(ctx).username, password);
  if (!("error" in result)) return;
  if (result.status === 503) throw new Problem(503, "busy", result.error);
  if (result.status === 429) throw new Problem(429, "too_many_requests", result.error);
  throw wrongPassword();
}

function wrongPassword(): Problem {
  return new Problem(422, "invalid_current_password", "Incorrect current password.", {
    errors: [{ field: "current_password", message: "must be your current password" }],
  });
}

function lastOwner(organizations: { name: string }[]): Problem {
  const names = organizations.map(({ name }) => name).join(", ");
  return new Problem(
    409,
    "last_owner",
    `You are the only owner of ${names}. Make another member an owner or delete the organization first.`,
  );
}
