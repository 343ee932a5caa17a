import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import type { Devices } from "../../auth/devices.ts";
import { hashPassword, passwordChangeSchema } from "../../auth/new-password.ts";
import type { IdentityProvider } from "../../auth/sso/identity-provider.ts";
import type { Transactions } from "../../auth/sso/transactions.ts";
import type { VerifyPassword } from "../../auth/verify-password.ts";
import type { Passwords } from "../../credentials/passwords.ts";
import { prefersHtml, readInput, textFieldOf } from "../../http/request-body.ts";
import type { Settings } from "../../settings/config.ts";
import { ACCOUNT, SECOND_FACTOR_SETUP, signedInUserOf } from "../access.ts";
import type { CreateOneTimeView } from "../one-time-view.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { addChange } from "../route.ts";
import { accountAppRoutes } from "./apps.ts";
import { emailRoutes } from "./email.ts";
import { exportOf, showAccount, showSession } from "./export.ts";
import { identityRoutes } from "./identities.ts";
import { accountPage, setupPage } from "./page.ts";
import { passkeyRoutes } from "./passkeys.ts";
import { type FactorOptions, recoveryCodeRoutes } from "./recovery-codes.ts";
import { setupReturnOf } from "./setup-return.ts";
import { totpRoutes } from "./totp.ts";

export type AccountOptions = Omit<FactorOptions, "storage" | "codesView"> & {
  settings: Pick<Settings, "SMTP_URL">;
  storage: Storage;
  passwords: Passwords;
  signIn: VerifyPassword;
  devices: Devices;
  identityProvider: IdentityProvider | undefined;
  transactions: Transactions;
};

export function accountRoutes(
  router: Router,
  options: AccountOptions & { oneTimeView: CreateOneTimeView },
): void {
  const { storage, identityProvider: provider, transactions } = options;
  const hasMail = options.settings.SMTP_URL !== undefined;

  const show: Show = async (ctx, error) => {
    const user = signedInUserOf(ctx);
    const memberships = await storage.organizations.listByUser(user.id);
    const account = await showAccount(storage, user, memberships);
    ctx.state.memberships = memberships;
    const mayAddPasskey = options.relyingParty !== undefined;
    const body = accountPage({ account, hasMail, provider: provider?.name, mayAddPasskey });
    showPage(ctx, { title: "Your account", error, body });
  };

  router.get(ACCOUNT, async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    const user = signedInUserOf(ctx);
    ctx.body = await showAccount(storage, user, await storage.organizations.listByUser(user.id));
  });
  router.get(`${ACCOUNT}/export`, async (ctx) => {
    // A browser returns to the page: it would not leave the sign-in page for a download.
    requireRecentSignIn(ctx, ACCOUNT);
    ctx.set("Content-Disposition", 'attachment; filename="linkgate-account.json"');
    const user = signedInUserOf(ctx);
    await storage.memberEvents.record(user.actor, { userId: user.id, type: "member.data_exported" });
    ctx.body = await exportOf(storage, user);
  });

  accountAppRoutes(router, options);
  identityRoutes(router, { identities: storage.identities, provider, transactions, show });
  const factorOptions: FactorOptions = { ...options, codesView: options.oneTimeView() };
  totpRoutes(router, factorOptions);
  passkeyRoutes(router, factorOptions);
  recoveryCodeRoutes(router, factorOptions);
  router.get(SECOND_FACTOR_SETUP, async (ctx) => {
    const memberships = await storage.organizations.listByUser(signedInUserOf(ctx).id);
    ctx.state.memberships = memberships;
    const organization = memberships.find(({ id }) => id === ctx.query.organization);
    const body = setupPage(organization?.name, options.relyingParty !== undefined, await setupReturnOf(ctx));
    showPage(ctx, { title: "Set up a second factor", body });
  });
  emailRoutes(router, { emails: storage.emails, hasMail, show });
  addPasswordRoute(router, options, show);
  addSessionRoutes(router, options);
  addDeletionRoutes(router, options, show);
}

function addPasswordRoute(router: Router, options: AccountOptions, show: Show): void {
  const { storage, passwords, sessions, devices } = options;

  router.post(`${ACCOUNT}/password`, redisplayForm(show), async (ctx) => {
    const user = signedInUserOf(ctx);
    const input = await readInput(ctx);
    const account = await storage.accounts.find(user.id);
    // SSO users without a password have none to enter.
    if (account?.passwordHash === null || user.secondFactor !== "none") requireRecentSignIn(ctx, ACCOUNT);
    if (account?.passwordHash !== null)
      await assertPassword(ctx, textFieldOf(input.current_password), options);
    const organizations = (await storage.organizations.listByUser(user.id)).map(({ name }) => name);
    const { new_password } = validate(passwordChangeSchema({ ...user, organizations }), input);
    const currentHash = account?.passwordHash ?? null;
    const newHash = await hashPassword(passwords, new_password);
    // A concurrent password change wins: it may have been made to lock this session out.
    if (!(await storage.accounts.changePassword({ currentHash, newHash }, user.sessionId, user.actor))) {
      throw wrongPassword();
    }
    if (user.means === "session") await sessions.renew(ctx);
    await devices.remember(ctx, user.id, { silent: true });
    respondToChange(ctx, { to: ACCOUNT, done: "password-changed" });
  });
}

function addSessionRoutes(router: Router, { storage }: AccountOptions): void {
  const { sessions } = storage;

  router.get(`${ACCOUNT}/sessions`, async (ctx) => {
    if (prefersHtml(ctx)) return ctx.redirect(ACCOUNT);
    const user = signedInUserOf(ctx);
    ctx.body = { data: (await sessions.listByUser(user.id)).map((session) => showSession(session, user)) };
  });

  addChange(router, ["delete", `${ACCOUNT}/sessions`], {}, async (ctx) => {
    const { sessionId, actor } = signedInUserOf(ctx);
    const { apps: choice } = await readInput(ctx);
    const apps = choice === true || choice === "true";
    await sessions.endOthers(sessionId, actor, { apps });
    respondToChange(ctx, { to: ACCOUNT, done: apps ? "apps-ended" : "sessions-ended" });
  });

  addChange(router, ["delete", `${ACCOUNT}/sessions/:id`], {}, async (ctx) => {
    const isRevoked = await sessions.end(ctx.params.id as string, signedInUserOf(ctx).actor);
    if (!isRevoked) throw notFound("session");
    respondToChange(ctx, { to: ACCOUNT, done: "session-ended" });
  });
}

function addDeletionRoutes(router: Router, options: AccountOptions, show: Show): void {
  const { storage, sessions } = options;

  addChange(router, ["delete", ACCOUNT], { show }, async (ctx) => {
    const user = signedInUserOf(ctx);
    const { id, actor, means, secondFactor } = user;
    const password = textFieldOf((await readInput(ctx)).password);
    if (!password || secondFactor !== "none") requireRecentSignIn(ctx, ACCOUNT);
    if (password) await assertPassword(ctx, password, options);
    const deletion = await storage.accountDeletions.deleteAccount(id, actor);
    if ("blockedBy" in deletion) throw lastOwner(deletion.blockedBy);
    if (means === "session") await sessions.end(ctx, user);
    respondToChange(ctx, { to: "/auth/login?deleted=1" });
  });
}

/** Wrong guesses count toward the same limits as on the sign-in page. Throws Problem. */
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
  const detail = `You are the only owner of ${names}. Make another member an owner or delete the organization first.`;
  return new Problem(409, "last_owner", detail);
}
