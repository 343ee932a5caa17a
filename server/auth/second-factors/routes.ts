import type { Router } from "@koa/router";
import type { Context } from "koa";
import { checkOrigin } from "../../http/csrf.ts";
import { type Input, readInput, textFieldOf } from "../../http/request-body.ts";
import { type Html, html } from "../../ui/html.ts";
import { alert, describedBy, page } from "../../ui/page.ts";
import { type PasskeyOption, passkeyButton } from "../../ui/sign-in.ts";
import type { AuthOptions } from "../auth-options.ts";
import { SECOND_FACTOR_PATH } from "../complete-sign-in.ts";
import { redisplayIfRefused, showSignInError } from "../error-handler.ts";
import { type FactorProof, keyReference, withFactor } from "../sign-in-proof.ts";
import type { PendingSignIn } from "./login-tokens.ts";
import { incorrectFactor } from "./verify-code.ts";

export function secondFactorRoutes(router: Router, options: AuthOptions): void {
  const { storage, relyingParty, loginTokens, verifyCode, signInAudit, completeSignIn, base } = options;

  async function showForm(
    ctx: Context,
    { jti, proof }: PendingSignIn,
    { isRecovery, error }: { isRecovery: boolean; error?: string },
  ): Promise<void> {
    const { totp, passkeys } = await storage.secondFactors.find(proof.accountId);
    const mayUsePasskey = relyingParty && passkeys.length > 0 && !isRecovery;
    const passkey = mayUsePasskey && {
      action: SECOND_FACTOR_PATH,
      options: await relyingParty.authenticationOptions(purposeOf(jti), passkeys),
      fields: {},
    };
    const other = isRecovery
      ? html`<a href="${SECOND_FACTOR_PATH}">Use another method</a>`
      : html`<a href="${SECOND_FACTOR_PATH}?method=recovery_code">Use a recovery code</a>`;
    ctx.body = page(
      "Confirm it’s you",
      html`<h1>Confirm it’s you</h1>
${alert(error, "error")}
${isRecovery ? recoveryForm(error) : html`${totp && totpForm(error)}${passkey && passkeyPart(passkey, !totp)}`}
<p class="hint">${other}</p>
<p class="hint">No access to any of these? Ask your administrator to reset your two-factor authentication.</p>`,
    );
  }

  async function verify(
    ctx: Context,
    pending: PendingSignIn,
    input: Input,
  ): Promise<FactorProof | undefined> {
    const { jti, proof } = pending;
    if (!input.passkey || !relyingParty) return verifyCode(ctx, pending, codesOf(input));
    const passkey = await relyingParty.verifyAuthentication(textFieldOf(input.passkey), purposeOf(jti), {
      requireUserVerification: false, // the password was the other factor
    });
    if (passkey?.userId !== proof.accountId) {
      signInAudit.passkeyFailed(ctx, proof.accountId);
      throw incorrectFactor("This passkey wasn’t accepted. Try again, or use another method.");
    }
    if (!(await loginTokens.useOnce(pending))) return undefined;
    return { method: "passkey", amr: keyReference(passkey), credential: passkey.id };
  }

  async function complete(ctx: Context, { proof, returnTo }: PendingSignIn, factor: FactorProof) {
    const credential = proof.credential ?? factor.credential;
    const whole = { ...withFactor(proof, factor), credential, passkey: factor.credential };
    return completeSignIn(ctx, whole, returnTo);
  }

  router.get(SECOND_FACTOR_PATH, async (ctx) => {
    const pending = loginTokens.find(ctx);
    if (!pending) return showExpired(ctx);
    await showForm(ctx, pending, { isRecovery: ctx.query.method === "recovery_code" });
  });

  router.post(SECOND_FACTOR_PATH, async (ctx) => {
    const input = await readInput(ctx);
    checkOrigin(ctx, base);
    const pending = loginTokens.find(ctx);
    if (!pending) return showExpired(ctx);
    const finish = async () => {
      const factor = await verify(ctx, pending, input);
      loginTokens.drop(ctx);
      if (!factor || !(await complete(ctx, pending, factor))) showExpired(ctx);
    };
    await redisplayIfRefused(ctx, finish, ({ message: error }) =>
      showForm(ctx, pending, { isRecovery: Boolean(input.recovery_code), error }),
    );
  });
}

function codesOf(input: Input) {
  return { totp: textFieldOf(input.totp), recoveryCode: textFieldOf(input.recovery_code) };
}

function purposeOf(pendingId: string): string {
  return `second factor ${pendingId}`;
}

function showExpired(ctx: Context): void {
  const text = "It took longer than five minutes, or was already completed. Sign in again.";
  showSignInError(ctx, 400, "This sign-in has expired", text);
}

function totpForm(error: string | undefined): Html {
  return html`<form method="post" action="${SECOND_FACTOR_PATH}">
<label for="totp">Code from your authenticator app</label>
<input id="totp" name="totp" inputmode="numeric" autocomplete="one-time-code" maxlength="7" required autofocus${describedBy(error)}>
<button type="submit">Continue</button>
</form>`;
}

function passkeyPart(passkey: PasskeyOption, isOnly: boolean): Html {
  return html`${isOnly && html`<p>Use your passkey to finish signing in.</p>`}
${passkeyButton(passkey, "Use a passkey")}
<noscript><p class="hint">Passkeys need JavaScript.</p></noscript>`;
}

function recoveryForm(error: string | undefined): Html {
  return html`<form method="post" action="${SECOND_FACTOR_PATH}">
<label for="recovery_code">Recovery code</label>
<input id="recovery_code" name="recovery_code" autocomplete="off" autocapitalize="none" spellcheck="false" required autofocus${describedBy(error, "recovery-hint")}>
<p class="hint" id="recovery-hint">One of the codes that you saved when you set up two-factor authentication. Each code works once.</p>
<button type="submit">Continue</button>
</form>`;
}
