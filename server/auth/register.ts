import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { RegistrationStore } from "../../adapters/accounts/register.ts";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import type { InvitationStore } from "../../adapters/organizations/invitations.ts";
import { Problem } from "../../resources/http/problem.ts";
import { validate } from "../../resources/http/validate.ts";
import type { Passwords } from "../credentials/passwords.ts";
import { type Input, prefersHtml, readInput, textFieldOf } from "../http/request-body.ts";
import { checkOrigin } from "../http/same-origin.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { siteKeyOf } from "../rate-limits/ip-key.ts";
import { describeWait } from "../rate-limits/store.ts";
import type { Settings } from "../settings/config.ts";
import { hidden, type SsoOption, ssoButton } from "../ui/fields.ts";
import { html } from "../ui/html.ts";
import { invitationSentence, type ShownInvitation } from "../ui/invitation.ts";
import { alert, describedBy, messagePage, page } from "../ui/page.ts";
import type { Devices } from "./devices.ts";
import type { FirstPartyTokens } from "./first-party-tokens.ts";
import { HOME, safeReturnTo } from "./return-to.ts";
import { errorTextOf, hashPassword, registrationSchema } from "./schemas.ts";
import { type Sessions, signedInAccount } from "./sessions.ts";
import { passwordProof } from "./sign-in-proof.ts";
import type { ShowSsoButton } from "./sso/button.ts";

type Registration = {
  username?: string;
  organizationName?: string;
  /** The path to redirect to afterward. */
  returnTo: string;
  /** The secret of an invitation to an existing organization; without it, the user gets a new one. */
  invitation?: string | undefined;
  /** What that invitation says; undefined if it is not valid. */
  invited?: ShownInvitation | undefined;
  error?: string;
  external?: SsoOption | undefined;
};

type Options = {
  accounts: AccountStore;
  settings: Pick<Settings, "REGISTRATION">;
  registrations: RegistrationStore;
  invitations: Pick<InvitationStore, "find">;
  passwords: Passwords;
  authenticationLimits: AuthenticationLimits;
  sessions: Sessions;
  devices: Devices;
  tokens: FirstPartyTokens;
  external: ShowSsoButton;
  base: string;
};

/** Adds `/auth/register`: creates a user, with an organization unless invited to one, and signs in. */
export function registerRoutes(router: Router, options: Options): void {
  const { settings, registrations, passwords, authenticationLimits, sessions, devices, tokens } = options;
  const { invitations, external, base } = options;

  async function register(ctx: Context, input: Input) {
    const invitation = textFieldOf(input.invitation) || undefined;
    if (!isRegistrationOpen(settings, invitation)) throw registrationClosed();
    const invitedTo = invitation && (await invitations.find(invitation))?.organizationName;
    const schema = registrationSchema(input, invitedTo);
    const { username, password, organization_name } = validate(schema, input);
    await limit(ctx, authenticationLimits);
    const registered = await registrations.register({
      username,
      passwordHash: await hashPassword(passwords, password, { network: siteKeyOf(ctx.ip) }),
      organizationName: organization_name || `${username}'s organization`,
      invitation,
      address: ctx.ip,
    });
    if (registered === "taken") throw usernameTaken();
    if (registered === "uninvited") throw invitationInvalid();
    return registered;
  }

  router.get("/auth/register", async (ctx) => {
    const returnTo = safeReturnTo(ctx.query.return_to);
    const invitation = invitationIn(returnTo);
    if (await signedInAccount(ctx, options)) {
      ctx.status = 303;
      return ctx.redirect(returnTo);
    }
    if (!isRegistrationOpen(settings, invitation)) return showClosed(ctx);
    const invited = invitation === undefined ? undefined : await invitations.find(invitation);
    ctx.body = registerPage({ returnTo, invitation, invited, external: await external(returnTo) });
  });

  router.post("/auth/register", async (ctx) => {
    const input = await readInput(ctx);
    if (prefersHtml(ctx)) return registerByForm(ctx, input);
    const { user, organization } = await register(ctx, input);
    await devices.remember(ctx, user.id, { silent: true });
    ctx.status = 201;
    ctx.body = { user, organization, ...(await tokens.issue(user.id, ctx.ip)) };
  });

  async function registerByForm(ctx: Context, input: Input) {
    checkOrigin(ctx, base);
    const returnTo = safeReturnTo(input.return_to);
    try {
      const { user } = await register(ctx, input);
      await sessions.begin(ctx, passwordProof(user.id));
      await devices.remember(ctx, user.id, { silent: true });
      ctx.status = 303;
      ctx.redirect(input.invitation ? HOME : returnTo); // the invitation has been used
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.code === "registration_closed") return showClosed(ctx);
      ctx.status = error.status;
      ctx.set(error.headers);
      const invitation = textFieldOf(input.invitation) || undefined;
      ctx.body = registerPage({
        returnTo,
        invitation,
        invited: invitation === undefined ? undefined : await invitations.find(invitation),
        username: textFieldOf(input.username),
        organizationName: textFieldOf(input.organization_name),
        error: errorTextOf(error),
        external: await external(returnTo),
      });
    }
  }
}

/** Returns whether a user may register, with or without an invitation. */
export function isRegistrationOpen(
  { REGISTRATION }: Pick<Settings, "REGISTRATION">,
  invitation: string | undefined,
): boolean {
  return REGISTRATION === "open" || (REGISTRATION === "invite" && invitation !== undefined);
}

/** Returns the secret of the invitation that a visitor opened before having to sign in. */
export function invitationIn(returnTo: string): string | undefined {
  return /^\/dashboard\/invitations\/([\w-]+)$/.exec(returnTo)?.[1];
}

/** What an invitation that can't be accepted says. */
export const INVITATION_INVALID =
  "This invitation has expired, was revoked, or has already been used. Ask for a new one.";

function usernameTaken(): Problem {
  const message = "This username is taken. Choose another one.";
  return new Problem(409, "username_taken", message, { errors: [{ field: "username", message }] });
}

function invitationInvalid(): Problem {
  return new Problem(403, "invitation_invalid", INVITATION_INVALID);
}

async function limit(ctx: Context, authenticationLimits: AuthenticationLimits): Promise<void> {
  const wait = await authenticationLimits.visit("registration", ctx.ip);
  if (!wait) return;
  const headers = { "Retry-After": String(wait) };
  throw new Problem(429, "too_many_requests", `Too many registrations. Try again in ${describeWait(wait)}.`, {
    headers,
  });
}

function registrationClosed(): Problem {
  return new Problem(403, "registration_closed", "You need an invitation to create an account.");
}

function showClosed(ctx: Context): void {
  ctx.status = 403;
  ctx.body = messagePage("Registration is closed", "You need an invitation to create an account.", {
    href: "/auth/login",
    text: "Sign in",
  });
}

/** Renders the registration form. */
function registerPage(registration: Registration): string {
  const {
    username = "",
    organizationName = "",
    returnTo,
    invitation,
    invited,
    error,
    external,
  } = registration;
  return page(
    "Create an account",
    html`<h1>Create an account</h1>
${invited ? html`<p>${invitationSentence(invited)}</p>` : html``}
${alert(error, "error")}
<form method="post" action="/auth/register">
${hidden("return_to", returnTo)}${invitation ? hidden("invitation", invitation) : html``}
<label for="username">Username</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus${describedBy(error, "username-hint")}>
<p class="hint" id="username-hint">3 to 64 letters, digits and . _ @ + -</p>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required${describedBy(undefined, "password-hint")}>
<p class="hint" id="password-hint">At least 8 characters. A few random words work well.</p>
${
  invitation
    ? html``
    : html`<label for="organization_name">Organization name (optional)</label>
<input id="organization_name" name="organization_name" value="${organizationName}" autocomplete="organization" maxlength="100">`
}
<button type="submit">Create account</button>
</form>
${ssoButton(external)}
<p class="hint">Already have an account? <a href="/auth/login?${new URLSearchParams({ return_to: returnTo })}">Sign in</a></p>`,
  );
}
