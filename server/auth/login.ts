import type { Router } from "@koa/router";
import type { Context } from "koa";
import { checkOrigin } from "../http/csrf.ts";
import { invitationIn, safeReturnTo, seeOther } from "../http/redirects.ts";
import { type Input, prefersHtml, readInput, textFieldOf } from "../http/request-body.ts";
import { pathOf } from "../operations/operation.ts";
import { logIn } from "../operations/sign-in.ts";
import { hidden } from "../ui/controls.ts";
import { html } from "../ui/html.ts";
import { page } from "../ui/page.ts";
import { invitationSentence } from "../ui/sign-in.ts";
import type { AuthOptions } from "./auth-options.ts";
import { limitVisits, redisplayIfRefused } from "./error-handler.ts";
import { programLogin } from "./program-login.ts";
import { isRegistrationOpen } from "./register.ts";
import { PASSKEY_PATH } from "./second-factors/passkeys.ts";
import { signInForm } from "./sign-in-form.ts";
import { passkeyProof } from "./sign-in-proof.ts";
import { incorrectCredentials } from "./verify-password.ts";

const PATH = pathOf(logIn);
const PASSKEY_NOT_ACCEPTED =
  "This passkey wasn’t accepted. It may have been removed, or this page was open for too long. Try again.";

export function loginRoutes(router: Router, options: AuthOptions): void {
  const { settings, signIn, completeSignIn, sessions, base, relyingParty } = options;
  const { accounts, invitations } = options.storage;

  async function showForm(ctx: Context, input: Input, filled: { username?: string; error?: string } = {}) {
    const returnTo = safeReturnTo(input.return_to);
    const again = input.again === "1";
    const token = invitationIn(returnTo);
    const invitation = token === undefined ? undefined : await invitations.find(token);
    const fields = html`${hidden("return_to", returnTo)}${again && hidden("again", "1")}`;
    const form = await signInForm(ctx, options, { action: PATH, fields, returnTo, again, ...filled });
    const register = html`<p class="hint">New here? <a href="/auth/register?${new URLSearchParams({ return_to: returnTo })}">Create an account</a></p>`;
    ctx.body = page(
      "Sign in",
      html`<h1>${again ? "Sign in again" : "Sign in"}</h1>
${input.deleted === "1" && html`<p class="notice" role="status">Your account was deleted.</p>`}
${again && html`<p>For your security, please sign in again.</p>`}
${invitation && html`<p>${invitationSentence(invitation)} Sign in to accept.</p>`}
${form}
${isRegistrationOpen(settings, token) && !again && register}
<p class="hint">Forgot your password? ${settings.SMTP_URL === undefined ? "Ask an organization owner or your administrator for a reset link." : html`<a href="/auth/forgot-password">Reset it by email</a>`}</p>`,
    );
  }

  router.get(PATH, async (ctx) => {
    const account = await sessions.account(ctx);
    if (!account) return showForm(ctx, ctx.query);
    if (ctx.query.again === "1") return showForm(ctx, ctx.query, { username: account.username });
    seeOther(ctx, safeReturnTo(ctx.query.return_to));
  });

  const loginForPrograms = programLogin(options);
  router.post(PATH, async (ctx, next) => {
    if (!prefersHtml(ctx)) return loginForPrograms(ctx, next);
    const input = await readInput(ctx);
    checkOrigin(ctx, base);
    const username = textFieldOf(input.username);
    const begin = async () => {
      const proof = await signIn(ctx, username, textFieldOf(input.password));
      if (!(await completeSignIn(ctx, proof, safeReturnTo(input.return_to)))) throw incorrectCredentials();
    };
    await redisplayIfRefused(ctx, begin, ({ message: error }) => showForm(ctx, input, { username, error }));
  });

  if (relyingParty)
    router.post(PASSKEY_PATH, limitVisits(options, "passkey"), async (ctx) => {
      const input = await readInput(ctx);
      checkOrigin(ctx, base);
      const passkey = await relyingParty.verifySignIn(ctx, textFieldOf(input.passkey));
      const account = passkey && (await accounts.find(passkey.userId));
      const proof = account && !account.disabled && passkeyProof(account.id, passkey);
      if (proof && (await completeSignIn(ctx, proof, safeReturnTo(input.return_to)))) return;
      ctx.status = 400;
      await showForm(ctx, input, { error: PASSKEY_NOT_ACCEPTED });
    });
}
