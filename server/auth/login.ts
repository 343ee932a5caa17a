import type { Router } from "@koa/router";
import type { Context } from "koa";
import { checkOrigin } from "../http/csrf.ts";
import { seeOther } from "../http/redirects.ts";
import { type Input, prefersHtml, readInput, textFieldOf } from "../http/request-body.ts";
import type { AuthOptions } from "./auth-options.ts";
import { limitVisits } from "./error-handler.ts";
import { dashboardSignInPage } from "./login-page.ts";
import { programLogin } from "./program-login.ts";
import { invitationIn, isRegistrationOpen } from "./register.ts";
import { safeReturnTo } from "./return-to.ts";
import { PASSKEY_PATH, signInPurposeOf } from "./second-factors/passkey-button.ts";
import { signedInAccount } from "./sessions.ts";
import { passkeyProof } from "./sign-in-proof.ts";
import { INCORRECT_CREDENTIALS } from "./verify-password.ts";

const PASSKEY_NOT_ACCEPTED =
  "This passkey wasn’t accepted. It may have been removed, or this page was open for too long. Try again.";

export function loginRoutes(router: Router, options: AuthOptions): void {
  const { settings, signIn, completeSignIn, sessions, base } = options;
  const { ssoButton, passkeyButton, relyingParty, browserIds } = options;
  const { accounts, invitations } = options.storage;

  async function showForm(ctx: Context, input: Input, filled: { username?: string; error?: string } = {}) {
    const returnTo = safeReturnTo(input.return_to);
    const again = input.again === "1";
    const invitation = invitationIn(returnTo);
    ctx.body = dashboardSignInPage({
      returnTo,
      again,
      isDeleted: input.deleted === "1",
      mayRegister: isRegistrationOpen(settings, invitation),
      hasMail: settings.SMTP_URL !== undefined,
      invited: invitation === undefined ? undefined : await invitations.find(invitation),
      external: await ssoButton(returnTo, { again }),
      passkey: await passkeyButton(ctx, returnTo),
      ...filled,
    });
  }

  router.get("/auth/login", async (ctx) => {
    const account = await signedInAccount(ctx, { sessions, accounts });
    if (!account) return showForm(ctx, ctx.query);
    if (ctx.query.again === "1") return showForm(ctx, ctx.query, { username: account.username });
    seeOther(ctx, safeReturnTo(ctx.query.return_to));
  });

  const loginForPrograms = programLogin(options);
  router.post("/auth/login", async (ctx, next) => {
    if (!prefersHtml(ctx)) return loginForPrograms(ctx, next);
    const input = await readInput(ctx);
    checkOrigin(ctx, base);
    const username = textFieldOf(input.username);
    const result = await signIn(ctx, username, textFieldOf(input.password));
    let failure = "error" in result ? result : undefined;
    if (!("error" in result) && !(await completeSignIn(ctx, result, safeReturnTo(input.return_to))))
      failure = INCORRECT_CREDENTIALS;
    if (!failure) return;
    ctx.status = failure.status;
    return showForm(ctx, input, { username, error: failure.error });
  });

  if (relyingParty)
    router.post(PASSKEY_PATH, limitVisits(options, "passkey"), async (ctx) => {
      const input = await readInput(ctx);
      checkOrigin(ctx, base);
      const passkey = await relyingParty.verifyAuthentication(
        textFieldOf(input.passkey),
        signInPurposeOf(browserIds.find(ctx)),
        { requireUserVerification: true },
      );
      const account = passkey && (await accounts.find(passkey.userId));
      const proof = account && !account.disabled && passkeyProof(account.id, passkey);
      if (proof && (await completeSignIn(ctx, proof, safeReturnTo(input.return_to)))) return;
      ctx.status = 400;
      await showForm(ctx, input, { error: PASSKEY_NOT_ACCEPTED });
    });
}
