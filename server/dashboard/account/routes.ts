import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import type { Devices } from "../../auth/devices.ts";
import type { RelyingParty } from "../../auth/passkeys/webauthn.ts";
import { hashPassword, passwordChangeSchema } from "../../auth/schemas.ts";
import type { Sessions } from "../../auth/sessions.ts";
import type { IdentityProvider } from "../../auth/sso/identity-provider.ts";
import type { Transactions } from "../../auth/sso/transactions.ts";
import type { VerifyPassword } from "../../auth/verify-password.ts";
import type { Passwords } from "../../credentials/passwords.ts";
import { prefersHtml, readInput, textFieldOf } from "../../http/request-body.ts";
import type { AuthenticationLimits } from "../../rate-limits/authentication.ts";
import type { Settings } from "../../settings/config.ts";
import { signedInUserOf } from "../access.ts";
import type { CreateOneTimeView } from "../one-time-view.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { accountAppRoutes } from "./apps.ts";
import { emailRoutes } from "./email.ts";
import { exportOf, showAccount, showSession } from "./export.ts";
import { identityRoutes } from "./identities.ts";
import { accountPage } from "./page.ts";
import type { NewCodes } from "./second-factors/options.ts";
import { passkeyRoutes } from "./second-factors/passkeys.ts";
import { recoveryCodeRoutes } from "./second-factors/recovery-codes.ts";
import { setupRoutes } from "./second-factors/setup.ts";
import { totpRoutes } from "./second-factors/totp.ts";

/** The dependencies of the account routes. */
export type AccountOptions = {
  settings: Pick<Settings, "SMTP_URL">;
  storage: Pick<
    Storage,
    | "accounts"
    | "emails"
    | "identities"
    | "sessions"
    | "secondFactors"
    | "accountDeletions"
    | "memberEvents"
    | "organizations"
    | "grants"
    | "secondFactorRequirement"
    | "webhooks"
  >;
  passwords: Passwords;
  signIn: VerifyPassword;
  sessions: Sessions;
  devices: Devices;
  identityProvider: IdentityProvider | undefined;
  transactions: Transactions;
  authenticationLimits: AuthenticationLimits;
  relyingParty: RelyingParty | undefined;
};

const PATH = "/dashboard/account";

/** Adds the routes of the user's own account: sessions, password, linked identities, data export and deletion. */
export function accountRoutes(
  router: Router,
  options: AccountOptions & { oneTimeView: CreateOneTimeView },
): void {
  const { storage, identityProvider: provider, transactions } = options;
  const hasMail = options.settings.SMTP_URL !== undefined;

  const show: Show = async (ctx, error) => {
    const user = signedInUserOf(ctx);
    const account = await showAccount(storage, user);
    ctx.state.memberships = account.organizations;
    const mayAddPasskey = options.relyingParty !== undefined;
    const body = accountPage({ account, csrf: user.csrf, hasMail, provider: provider?.name, mayAddPasskey });
    showPage(ctx, { title: "Your account", error }, body);
  };

  router.get(PATH, async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    ctx.body = await showAccount(storage, signedInUserOf(ctx));
  });
  router.get(`${PATH}/export`, async (ctx) => {
    // A browser returns to the page: it would not leave the sign-in page for a download.
    requireRecentSignIn(ctx, PATH);
    ctx.set("Content-Disposition", 'attachment; filename="linkgate-account.json"');
    const user = signedInUserOf(ctx);
    await storage.memberEvents.record(user.actor, { userId: user.id, type: "member.data_exported" });
    ctx.body = await exportOf(storage, user);
  });

  accountAppRoutes(router, options);
  identityRoutes(router, { identities: storage.identities, provider, transactions, show });
  const factorOptions = { ...options, codesView: options.oneTimeView<NewCodes>() };
  totpRoutes(router, factorOptions);
  passkeyRoutes(router, factorOptions);
  recoveryCodeRoutes(router, factorOptions);
  setupRoutes(router, factorOptions);
  emailRoutes(router, { emails: storage.emails, hasMail, show });
  addPasswordRoute(router, options, show);
  addSessionRoutes(router, options);
  addDeletionRoutes(router, options, show);
}

function addPasswordRoute(router: Router, options: AccountOptions, show: Show): void {
  const { storage, passwords, sessions, devices } = options;

  router.post(`${PATH}/password`, redisplayForm(show), async (ctx) => {
    const user = signedInUserOf(ctx);
    const input = await readInput(ctx);
    const account = await storage.accounts.find(user.id);
    // SSO users without a password have none to enter.
    if (account?.passwordHash === null || user.secondFactor !== "none") requireRecentSignIn(ctx, PATH);
    if (account?.passwordHash !== null)
      await assertPassword(ctx, textFieldOf(input.current_password), options);
    const organizations = (await storage.organizations.listByUser(user.id)).map(({ name }) => name);
    const { new_password } = validate(passwordChangeSchema({ ...user, organizations }), input);
    const currentHash = account?.passwordHash ?? null;
    const newHash = await hashPassword(passwords, new_password);
    // A concurrent password change wins: it may have been made to lock this session out.
    if (!(await storage.sessions.changePassword({ currentHash, newHash }, user.sessionId, user.actor))) {
      throw wrongPassword();
    }
    if (user.means === "session") await sessions.renew(ctx);
    await devices.remember(ctx, user.id, { silent: true });
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
    const { apps: choice } = await readInput(ctx);
    const apps = choice === true || choice === "true";
    await sessions.endOthers(sessionId, actor, { apps });
    respondToChange(ctx, { to: PATH, done: apps ? "apps-ended" : "sessions-ended" });
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
    const user = signedInUserOf(ctx);
    const { id, actor, means, secondFactor } = user;
    const password = textFieldOf((await readInput(ctx)).password);
    if (!password || secondFactor !== "none") requireRecentSignIn(ctx, PATH);
    if (password) await assertPassword(ctx, password, options);
    const deletion = await storage.accountDeletions.deleteAccount(id, actor);
    if ("blockedBy" in deletion) throw lastOwner(deletion.blockedBy);
    if (means === "session") await sessions.end(ctx, user);
    respondToChange(ctx, { to: "/auth/login?deleted=1" });
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
  if (result.code === "invalid_credentials") throw wrongPassword();
  throw new Problem(result.status, result.code, result.error);
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
