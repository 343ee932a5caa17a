import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { SecondFactorStore } from "../../../adapters/accounts/second-factors/index.ts";
import { type Input, readInput, textFieldOf } from "../../http/request-body.ts";
import { checkOrigin } from "../../http/same-origin.ts";
import { type Html, html } from "../../ui/html.ts";
import { alert, describedBy, messagePage, page } from "../../ui/page.ts";
import { type PasskeyOption, passkeyButton } from "../../ui/passkeys.ts";
import { type CompleteSignIn, SECOND_FACTOR_PATH } from "../complete-sign-in.ts";
import type { RelyingParty } from "../passkeys/webauthn.ts";
import type { SignInAudit } from "../sign-in-audit.ts";
import { type FactorProof, keyReference, withFactor } from "../sign-in-proof.ts";
import type { LoginError } from "../verify-password.ts";
import type { LoginTokens, PendingSignIn } from "./login-tokens.ts";
import type { VerifyCode } from "./verify.ts";

type SecondFactorPage = {
  action: string;
  passkey: PasskeyOption | undefined;
  hasTotp: boolean;
  /** Whether to ask for a recovery code. */
  isRecovery: boolean;
  error: string | undefined;
};

type Options = {
  secondFactors: Pick<SecondFactorStore, "find">;
  relyingParty: RelyingParty | undefined;
  loginTokens: LoginTokens;
  verifyCode: VerifyCode;
  signInAudit: Pick<SignInAudit, "passkeyFailed">;
  completeSignIn: CompleteSignIn;
  base: string;
};

const PASSKEY_NOT_ACCEPTED: LoginError = {
  error: "This passkey wasn’t accepted. Try again, or use another method.",
  status: 400,
  code: "invalid_second_factor",
};

/** Adds `/auth/second-factor`, where a browser proves the second factor of a pending sign-in. */
export function secondFactorRoutes(router: Router, options: Options): void {
  const { secondFactors, relyingParty, loginTokens, verifyCode, signInAudit, completeSignIn, base } = options;

  async function showForm(
    ctx: Context,
    { id, proof }: PendingSignIn,
    { isRecovery, error }: { isRecovery: boolean; error?: string },
  ): Promise<void> {
    const { totp, passkeys } = await secondFactors.find(proof.accountId);
    const mayUsePasskey = relyingParty && passkeys.length > 0 && !isRecovery;
    ctx.body = secondFactorPage({
      action: SECOND_FACTOR_PATH,
      hasTotp: totp !== undefined,
      isRecovery,
      error,
      passkey: mayUsePasskey
        ? {
            action: SECOND_FACTOR_PATH,
            options: await relyingParty.authenticationOptions(purposeOf(id), passkeys),
            fields: {},
          }
        : undefined,
    });
  }

  /** Completes the pending sign-in. Returns undefined if it was already completed. */
  async function verify(ctx: Context, pending: PendingSignIn, input: Input) {
    const { id, proof } = pending;
    if (!input.passkey || !relyingParty) return verifyCode(ctx, pending, codesOf(input));
    const passkey = await relyingParty.verifyAuthentication(textFieldOf(input.passkey), purposeOf(id), {
      requireUserVerification: false, // the password was the other factor
    });
    if (passkey?.userId !== proof.accountId) {
      signInAudit.passkeyFailed(ctx, proof.accountId);
      return PASSKEY_NOT_ACCEPTED;
    }
    const proved: FactorProof = { method: "passkey", amr: keyReference(passkey), credential: passkey.id };
    return (await loginTokens.complete(pending)) ? proved : undefined;
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
    const factor = await verify(ctx, pending, input);
    if (factor && "error" in factor) {
      ctx.status = factor.status;
      return showForm(ctx, pending, { isRecovery: Boolean(input.recovery_code), error: factor.error });
    }
    loginTokens.drop(ctx);
    if (!factor) return showExpired(ctx);
    const credential = pending.proof.credential ?? factor.credential;
    const proof = { ...withFactor(pending.proof, factor), credential, passkey: factor.credential };
    if (!(await completeSignIn(ctx, proof, pending.returnTo))) return showExpired(ctx);
  });
}

/** Returns the codes in a form or a JSON body. */
export function codesOf(input: Input) {
  return { totp: textFieldOf(input.totp), recoveryCode: textFieldOf(input.recovery_code) };
}

function purposeOf(pendingId: string): string {
  return `second factor ${pendingId}`;
}

function showExpired(ctx: Context): void {
  ctx.status = 400;
  ctx.type = "html";
  ctx.body = messagePage(
    "This sign-in has expired",
    "It took longer than five minutes, or was already completed. Sign in again.",
    { href: "/auth/login", text: "Go to sign-in" },
  );
}

/** Renders the page that asks for the second factor after the password. */
function secondFactorPage({ action, passkey, hasTotp, isRecovery, error }: SecondFactorPage): string {
  const other = isRecovery
    ? html`<a href="${action}">Use another method</a>`
    : html`<a href="${action}?method=recovery_code">Use a recovery code</a>`;
  return page(
    "Confirm it’s you",
    html`<h1>Confirm it’s you</h1>
${alert(error, "error")}
${isRecovery ? recoveryForm(action, error) : html`${hasTotp ? totpForm(action, error) : html``}${passkeyPart(passkey, hasTotp)}`}
<p class="hint">${other}</p>
<p class="hint">No access to any of these? Ask your administrator to reset your second factors.</p>`,
  );
}

function totpForm(action: string, error: string | undefined): Html {
  return html`<form method="post" action="${action}">
<label for="totp">Code from your authenticator app</label>
<input id="totp" name="totp" inputmode="numeric" autocomplete="one-time-code" maxlength="7" required autofocus${describedBy(error)}>
<button type="submit">Continue</button>
</form>`;
}

function passkeyPart(passkey: PasskeyOption | undefined, hasTotp: boolean): Html {
  if (!passkey) return html``;
  return html`${hasTotp ? html`` : html`<p>Use your passkey to finish signing in.</p>`}
${passkeyButton(passkey, "Use a passkey")}
<noscript><p class="hint">Passkeys need JavaScript.</p></noscript>`;
}

function recoveryForm(action: string, error: string | undefined): Html {
  return html`<form method="post" action="${action}">
<label for="recovery_code">Recovery code</label>
<input id="recovery_code" name="recovery_code" autocomplete="off" autocapitalize="none" spellcheck="false" required autofocus${describedBy(error, "recovery-hint")}>
<p class="hint" id="recovery-hint">One of the codes that you saved when you set up your second factor. Each code works once.</p>
<button type="submit">Continue</button>
</form>`;
}
