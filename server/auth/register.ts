import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { z } from "zod";
import { Problem } from "../../resources/http/problem.ts";
import { invalidField, validate } from "../../resources/http/validate.ts";
import { validatePassword } from "../credentials/password-rules.ts";
import { siteKeyOf } from "../http/client-ip.ts";
import { checkOrigin } from "../http/csrf.ts";
import { HOME, invitationIn, safeReturnTo, seeOther } from "../http/redirects.ts";
import { prefersHtml, readInput, textFieldOf } from "../http/request-body.ts";
import { pathOf } from "../operations/operation.ts";
import { refusal } from "../operations/problem-codes.ts";
import { register } from "../operations/sign-in.ts";
import type { Settings } from "../settings/config.ts";
import { hidden } from "../ui/controls.ts";
import { html } from "../ui/html.ts";
import { alert, describedBy, page } from "../ui/page.ts";
import { invitationSentence, ssoButton } from "../ui/sign-in.ts";
import type { AuthOptions } from "./auth-options.ts";
import { limitVisits, redisplayIfRefused, SIGN_IN, showMessage } from "./error-handler.ts";
import { serve } from "./program-login.ts";
import { passwordProof } from "./sign-in-proof.ts";

const PATH = pathOf(register);

/** What the form was filled in with, and why it was refused. */
type Filled = { username?: string; organizationName?: string; error?: string };

export function registerRoutes(router: Router, options: AuthOptions): void {
  const { settings, passwords, sessions, devices, tokens, base } = options;
  const { registrations, invitations } = options.storage;

  async function createAccount(ctx: Context, input: z.output<(typeof register)["input"]>) {
    const { username, password, organization_name = "" } = input;
    const invitation = input.invitation || undefined;
    if (!isRegistrationOpen(settings, invitation)) throw new Problem(403, "registration_closed", CLOSED);
    const invitedTo = invitation && (await invitations.find(invitation))?.organizationName;
    const error = validatePassword(password, { username, organizations: [invitedTo ?? organization_name] });
    if (error) throw invalidField("password", error);
    const registered = await registrations.register({
      username,
      passwordHash: await passwords.hash(password, { network: siteKeyOf(ctx.ip) }),
      organizationName: organization_name || `${username}'s organization`,
      invitation,
      address: ctx.ip,
    });
    if (registered === "taken") {
      const message = "This username is taken. Choose another one.";
      throw new Problem(409, "username_taken", message, { errors: [{ field: "username", message }] });
    }
    if (registered === "uninvited") throw refusal("invitation_invalid");
    return registered;
  }

  router.get(PATH, async (ctx) => {
    const returnTo = safeReturnTo(ctx.query.return_to);
    const invitation = invitationIn(returnTo);
    if (await sessions.account(ctx)) return seeOther(ctx, returnTo);
    if (!isRegistrationOpen(settings, invitation))
      return invitation
        ? seeOther(ctx, `/auth/login?${new URLSearchParams({ return_to: returnTo })}`)
        : showClosed(ctx);
    if (invitation && !(await invitations.find(invitation))) throw refusal("invitation_invalid");
    return showForm(ctx, returnTo, invitation);
  });

  async function showForm(
    ctx: Context,
    returnTo: string,
    invitation: string | undefined,
    filled: Filled = {},
  ) {
    const invited = invitation === undefined ? undefined : await invitations.find(invitation);
    const { username = "", organizationName = "", error } = filled;
    ctx.body = page(
      "Create an account",
      html`<h1>Create an account</h1>
${invited && html`<p>${invitationSentence(invited)}</p>`}
${alert(error, "error")}
<form method="post" action="${PATH}">
${hidden("return_to", returnTo)}${invitation && hidden("invitation", invitation)}
<label for="username">Username</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus${describedBy(error, "username-hint")}>
<p class="hint" id="username-hint">3 to 64 letters, digits and . _ @ + -</p>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required${describedBy(undefined, "password-hint")}>
<p class="hint" id="password-hint">At least 8 characters. A few random words work well.</p>
${
  !invitation &&
  html`<label for="organization_name">Organization name (optional)</label>
<input id="organization_name" name="organization_name" value="${organizationName}" autocomplete="organization" maxlength="100">`
}
<button type="submit">Create account</button>
</form>
${ssoButton(await options.ssoOption(returnTo))}
<p class="hint">Already have an account? <a href="/auth/login?${new URLSearchParams({ return_to: returnTo })}">Sign in</a></p>`,
    );
  }

  const registerForPrograms = serve(register, async (ctx, input) => {
    const { user, organization } = await createAccount(ctx, input);
    await devices.remember(ctx, user.id, { silent: true });
    return { user, organization, ...(await tokens.issue(user.id, ctx.ip)) };
  });
  const limit = limitVisits(options, "registration", "registrations");
  router.post(PATH, limit, (ctx, next) =>
    prefersHtml(ctx) ? registerByForm(ctx) : registerForPrograms(ctx, next),
  );

  async function registerByForm(ctx: Context) {
    const input = await readInput(ctx);
    checkOrigin(ctx, base);
    const returnTo = safeReturnTo(input.return_to);
    const signUp = async () => {
      const { user } = await createAccount(ctx, validate(register.input, input));
      await sessions.begin(ctx, passwordProof(user.id));
      await devices.remember(ctx, user.id, { silent: true });
      seeOther(ctx, input.invitation ? HOME : returnTo); // the invitation has been used
    };
    await redisplayIfRefused(ctx, signUp, ({ code, errors, message }) => {
      if (code === "registration_closed") return showClosed(ctx);
      return showForm(ctx, returnTo, textFieldOf(input.invitation) || undefined, {
        username: textFieldOf(input.username),
        organizationName: textFieldOf(input.organization_name),
        error: errors ? errors.map((error) => error.message).join(" ") : message,
      });
    });
  }
}

export function isRegistrationOpen(
  { REGISTRATION }: Pick<Settings, "REGISTRATION">,
  invitation: string | undefined,
): boolean {
  return REGISTRATION === "open" || (REGISTRATION === "invite" && invitation !== undefined);
}

const CLOSED = "You need an invitation to create an account.";

function showClosed(ctx: Context): void {
  showMessage(ctx, 403, "Registration is closed", CLOSED, SIGN_IN);
}
