import type { Router } from "@koa/router";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import type { AuthOptions } from "../../auth/auth-options.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { ProviderUnavailable } from "../../auth/sso/identity-provider.ts";
import { describeBrowser } from "../../http/describe-browser.ts";
import { prefersHtml, textFieldOf } from "../../http/request-body.ts";
import {
  ACCOUNT,
  changePassword,
  deleteAccount,
  exportAccount,
  getAccount,
  type ShownAccount,
  unlinkIdentity,
} from "../../operations/account.ts";
import { findOwnApp, findOwnApps, listOwnApps, revokeOwnApp } from "../../operations/account-apps.ts";
import { confirmEmail, getPendingEmail, removeEmail, requestEmailChange } from "../../operations/email.ts";
import { endOtherSessions, endSession, listSessions } from "../../operations/sessions.ts";
import { badge, CSRF_FIELD, field, formButton, linkButton, submitButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { page } from "../../ui/page.ts";
import { type Columns, emptyState, table } from "../../ui/table.ts";
import { capitalized, formatTime } from "../../ui/text.ts";
import { signedInUserOf } from "../access.ts";
import { appRevocationForm, authorizedAppsTable } from "../authorized-apps.ts";
import { type FieldErrors, formFieldsOf, type Show, splitFieldErrors } from "../forms.ts";
import { addOperation, addOperationPage, addReading, runOperation } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import type { RouteOptions } from "../route.ts";
import { secondFactorRoutes } from "./second-factors.ts";

export type AccountParts = Pick<AuthOptions, "identityProvider" | "relyingParty" | "transactions">;

export function accountRoutes(router: Router, options: RouteOptions & AccountParts): void {
  const { storage, settings, identityProvider, relyingParty } = options;
  const to = () => ACCOUNT;

  // The header of each page lists the user's organizations.
  router.use(ACCOUNT, async (ctx, next) => {
    if (prefersHtml(ctx))
      ctx.state.memberships = await storage.organizations.listByUser(signedInUserOf(ctx).id);
    return next();
  });

  const show: Show = async (ctx, _error, problem) => {
    const { error, errors } = splitFieldErrors(problem);
    const showsError = problem?.code === "last_owner";
    const typed = problem ? textFieldOf((await formFieldsOf(ctx)).email) : "";
    const account = await runOperation(ctx, options, getAccount);
    const { user, identities, second_factors: factors, sessions } = account;
    const provider = identityProvider?.name;
    const hasMail = settings.SMTP_URL !== undefined;
    const body = html`${passwordPanel(user.has_password, errors)}
${factorsPanel(factors, relyingParty !== undefined)}
${(hasMail || user.email) && emailPanel(user.email, hasMail, { value: typed, error: errors.email })}
${sessionsPanel(sessions, provider)}
${(provider || identities.length > 0) && identitiesPanel(identities, provider)}
<section class="panel"><h2>Apps you authorized</h2>
<p>See which apps act for you in your organizations, and revoke their access.</p>
${linkButton(`${ACCOUNT}/apps`, "View apps", "quiet")}
</section>
<section class="panel"><h2>Your data</h2>
<p>Download everything we store about you. Links and clicks belong to your organizations and aren’t included.</p>
${linkButton(`${ACCOUNT}/export`, "Download data", "quiet")}
</section>
${deletionPanel(user.has_password, errors, showsError ? error : undefined)}`;
    showPage(ctx, { title: "Your account", error, showsError, body });
  };

  addReading(router, options, getAccount, (ctx) => show(ctx));
  addReading(router, options, exportAccount);
  addOperation(router, options, changePassword, { show, to });
  addOperation(router, options, deleteAccount, { show, to: () => "/auth/login?deleted=1" });
  addReading(router, options, listSessions, (ctx) => ctx.redirect(ACCOUNT));
  addOperation(router, options, endOtherSessions, { to });
  addOperation(router, options, endSession, { to });

  accountAppRoutes(router, options);
  identityRoutes(router, options, show);
  emailRoutes(router, options, show);
  secondFactorRoutes(router, options);
}

type ShownFactors = ShownAccount["second_factors"];
type ShownSession = ShownAccount["sessions"][number];
type Identity = ShownAccount["identities"][number];

function passwordPanel(hasPassword: boolean, errors: FieldErrors): Html {
  return html`<section class="panel"><h2>Password</h2>
<p>Changing your password signs you out everywhere else and revokes the apps you authorized.</p>
<form method="post" action="${ACCOUNT}/password" class="stack">${CSRF_FIELD}
${hasPassword && currentPassword("current_password", "Current password", errors)}
${field({
  name: "new_password",
  label: "New password",
  type: "password",
  error: errors.new_password,
  hint: "At least 8 characters. A few random words work well.",
  attributes: html`autocomplete="new-password" required`,
})}
<button type="submit">${hasPassword ? "Change password" : "Set password"}</button>
</form></section>`;
}

function factorsPanel(factors: ShownFactors, mayAddPasskey: boolean): Html {
  const hasFactor = factors.totp !== null || factors.passkeys.length > 0;
  return html`<section class="panel" id="second-factors"><h2>Passkeys and two-factor authentication</h2>
<p>${hasFactor ? "After your password, you confirm sign-ins with one of these." : "Add a second step to your sign-in, so that a stolen password isn’t enough to sign in to your account."}</p>
<h3>Passkeys</h3>
${passkeyTable(factors.passkeys)}
${mayAddPasskey ? html`<p>${linkButton(`${ACCOUNT}/passkeys/new`, "Add passkey", "quiet")}</p>` : html`<p class="hint">Passkeys need a domain name, and this server’s address is an IP address.</p>`}
<h3>Authenticator app</h3>
${totpPart(factors.totp)}
${hasFactor && recoveryPart(factors.recovery_codes_left)}
</section>`;
}

function passkeyTable(passkeys: ShownFactors["passkeys"]): Html {
  if (passkeys.length === 0) return html`<p class="soft">No passkeys yet.</p>`;
  const columns: Columns<ShownFactors["passkeys"][number]> = {
    Name: ({ name }) => html`<bdi>${name}</bdi>`,
    Added: ({ created_at }) => time(Date.parse(created_at)),
    "Last used": ({ last_used_at }) => time(last_used_at ? Date.parse(last_used_at) : null),
  };
  return table("Passkeys", columns, passkeys, ({ id, name }) =>
    formButton({ action: `${ACCOUNT}/passkeys/${id}/delete`, text: "Remove", about: `passkey ${name}` }),
  );
}

function totpPart(totp: ShownFactors["totp"]): Html {
  if (!totp)
    return html`<form method="post" action="${ACCOUNT}/totp">${CSRF_FIELD}<button type="submit" class="quiet">Set up authenticator app</button></form>`;
  return html`<p>Set up ${time(Date.parse(totp.created_at))}, last used ${time(totp.last_used_at ? Date.parse(totp.last_used_at) : null)}.</p>
${formButton({ action: `${ACCOUNT}/totp/delete`, text: "Remove authenticator app" })}`;
}

function recoveryPart(left: number): Html {
  return html`<h3>Recovery codes</h3>
<p>${left === 1 ? "1 unused code" : `${left} unused codes`}. New codes replace all old ones.</p>
${formButton({ action: `${ACCOUNT}/recovery-codes`, text: "Create new recovery codes" })}`;
}

const METHODS: Record<string, string> = {
  password: "Password",
  totp: "authenticator app",
  recovery_code: "recovery code",
  passkey: "passkey",
};

function sessionsPanel(sessions: ShownSession[], provider: string | undefined): Html {
  const columns: Columns<ShownSession> = {
    Device: ({ means, user_agent, current }) =>
      html`${means === "token" ? "API client" : describeBrowser(user_agent ?? "")}${current && html` ${badge("this device", "good")}`}`,
    "IP address": ({ address }) => address ?? "unknown",
    "Signed in": ({ created_at, methods }) =>
      html`${time(Date.parse(created_at))}<br><span class="soft">${describeMethods(methods, provider)}</span>`,
    "Last used": ({ last_seen_at }) => (last_seen_at ? time(Date.parse(last_seen_at)) : "–"),
  };
  const revokeButton = ({ id, current, created_at }: ShownSession) => {
    const about = `session from ${formatTime(Date.parse(created_at))}`;
    return current ? "" : formButton({ action: `${ACCOUNT}/sessions/${id}/delete`, text: "Revoke", about });
  };
  const hasOthers = sessions.some(({ current }) => !current);
  return html`<section class="group"><h2>Active sessions</h2>
${table("Active sessions", columns, sessions, revokeButton)}
${hasOthers && signOutForm()}
</section>`;
}

function signOutForm(): Html {
  return html`<form method="post" action="${ACCOUNT}/sessions/delete" class="stack">${CSRF_FIELD}
<label class="option"><input type="checkbox" name="apps" value="true"> Also revoke the access of all apps</label>
<button type="submit" class="quiet">Sign out everywhere else</button></form>`;
}

/** Returns the methods of a sign-in, such as “Password + authenticator app”. */
function describeMethods(methods: string[], provider = "SSO"): string {
  const names = methods.map((method) => (method === "sso" ? provider : (METHODS[method] ?? method)));
  return capitalized(names.join(" + ")) || "–";
}

function identitiesPanel(identities: Identity[], provider: string | undefined): Html {
  const columns: Columns<Identity> = {
    Identity: ({ label, subject }) => label ?? subject,
    Provider: ({ issuer }) => issuer,
  };
  const unlinkButton = ({ issuer, subject, label }: Identity) =>
    formButton({
      action: `${ACCOUNT}/identities/delete`,
      text: "Unlink",
      about: label ?? subject,
      fields: { issuer, subject },
    });
  return html`<section class="panel"><h2>Linked identities</h2>
${identities.length > 0 ? table("Linked identities", columns, identities, unlinkButton) : html`<p>No identity is linked to this account.</p>`}
${provider && formButton({ action: `${ACCOUNT}/identities`, text: `Link ${provider}` })}
</section>`;
}

function deletionPanel(hasPassword: boolean, errors: FieldErrors, error: string | undefined): Html {
  return html`<section class="panel danger"><h2>Delete account</h2>
<p>This also deletes organizations that have no other members, and their short links stop working. You can’t undo this.</p>
<form method="post" action="${ACCOUNT}/delete" class="stack">${CSRF_FIELD}
${hasPassword && currentPassword("password", "Your password", errors)}
${submitButton("Delete account", "danger", error)}
</form></section>`;
}

function currentPassword(name: string, label: string, errors: FieldErrors): Html {
  return field({
    name,
    label,
    type: "password",
    error: errors[name],
    attributes: html`autocomplete="current-password" required`,
  });
}

const EMAIL_PATH = `${ACCOUNT}/email`;

function emailRoutes(router: Router, options: RouteOptions, show: Show): void {
  const to = () => ACCOUNT;
  addOperation(router, options, requestEmailChange, { show, to });
  addOperation(router, options, removeEmail, { to });
  addReading(router, options, getPendingEmail, async (ctx) => {
    const { email } = await runOperation(ctx, options, getPendingEmail);
    const body = confirmEmailPage(ctx.path, email);
    showPage(ctx, { title: "Confirm your email address", body });
  });
  addOperation(router, options, confirmEmail, { to });
}

function emailPanel(
  email: string | null,
  hasMail: boolean,
  state: { value: string; error: string | undefined },
): Html {
  return html`<section class="panel"><h2>Email address</h2>
<p>For security notices and password resets. It’s never used to sign in, and we don’t share it.</p>
${email && html`<p>Your address is <strong><bdi>${email}</bdi></strong>.</p>`}
${
  hasMail
    ? html`<form method="post" action="${EMAIL_PATH}" class="stack">${CSRF_FIELD}
${field({
  ...state,
  name: "email",
  label: email ? "New email address" : "Email address",
  type: "email",
  hint: "You’ll get a link that confirms the address.",
  attributes: html`autocomplete="email" maxlength="254" required`,
})}
<button type="submit">${email ? "Change email address" : "Add email address"}</button>
</form>`
    : html`<p class="hint">This server doesn’t send email at the moment.</p>`
}
${email && formButton({ action: `${EMAIL_PATH}/delete`, text: "Remove email address" })}
</section>`;
}

function confirmEmailPage(action: string, email: string): Html {
  return html`<div class="panel"><p>Use <strong><bdi>${email}</bdi></strong> for your security notices and password resets?</p>
<form method="post" action="${action}">${CSRF_FIELD}<button type="submit">Confirm email address</button></form></div>`;
}

const IDENTITIES_PATH = `${ACCOUNT}/identities`;

function identityRoutes(
  router: Router,
  options: RouteOptions & Pick<AuthOptions, "identityProvider" | "transactions">,
  show: Show,
): void {
  const { identityProvider: provider, transactions } = options;
  router.post(IDENTITIES_PATH, async (ctx) => {
    const { id, means } = signedInUserOf(ctx);
    if (!provider) throw notFound("identity provider");
    if (means !== "session" || !prefersHtml(ctx))
      throw new Problem(406, "browser_required", "Open the account page in a browser to link an identity.");
    requireRecentSignIn(ctx, ACCOUNT);
    const { url, secrets } = await provider.begin().catch(throwUnlessUnavailable);
    transactions.keep(ctx, { secrets, returnTo: ACCOUNT, linkTo: id });
    // Not a redirect: `form-action` would have to allow every URL that the provider redirects to.
    ctx.body = linkIdentityPage(provider.name, url);
  });

  addOperation(router, options, unlinkIdentity, { show, to: () => ACCOUNT });
}

function throwUnlessUnavailable(error: unknown): never {
  if (!(error instanceof ProviderUnavailable)) throw error;
  const detail = "The identity provider is unavailable right now. Try again in a minute.";
  throw new Problem(503, "provider_unavailable", detail);
}

function linkIdentityPage(provider: string, href: string): string {
  return page(
    `Link ${provider}`,
    html`<h1>Link ${provider}</h1>
<p>Sign in to ${provider} to link it to your account. You can then sign in here with ${provider}.</p>
<p><a class="button" href="${href}">Continue to ${provider}</a></p>
<p class="hint"><a href="/dashboard/account">Back to account</a></p>`,
  );
}

const APPS_PATH = `${ACCOUNT}/apps`;
const APPS_INTRO =
  "Apps that act for you, in all of your organizations. Revoking access takes effect immediately.";

function accountAppRoutes(router: Router, options: RouteOptions): void {
  const { storage } = options;

  addReading(router, options, listOwnApps, async (ctx) => {
    const { apps } = await findOwnApps(storage, signedInUserOf(ctx));
    const body =
      apps.length === 0
        ? emptyState("No authorized apps", "Apps appear here once you authorize them.")
        : authorizedAppsTable(apps, {
            caption: "Apps you authorized",
            authorization: ({ organization }) => html`for <bdi>${organization.name}</bdi>`,
            path: APPS_PATH,
            whose: ({ organization }) => `to ${organization.name}`,
          });
    showPage(ctx, { title: "Apps you authorized", intro: APPS_INTRO, body });
  });

  addOperationPage(router, options, revokeOwnApp, {
    path: `${APPS_PATH}/:grant_id/delete`,
    to: () => APPS_PATH,
    async render(ctx) {
      const found = await findOwnApp(storage, signedInUserOf(ctx), ctx.params.grant_id);
      const { app, apps, membership, managesWebhooks } = found;
      const body = appRevocationForm({
        app,
        apps,
        organizationName: membership.name,
        isOwn: true,
        webhookHosts: managesWebhooks
          ? await storage.webhooks.listCreatedHosts(membership.id, app)
          : undefined,
        path: APPS_PATH,
      });
      return { title: "Revoke access?", body };
    },
  });
}
