import type { Context } from "koa";
import type { CodeUse } from "../../../adapters/accounts/second-factors/recovery-codes.ts";
import type { Storage } from "../../../adapters/index.ts";
import type { SingleUse } from "../../../adapters/oauth/replay.ts";
import { stepOfCode } from "../../credentials/totp.ts";
import type { AuthenticationLimits } from "../../rate-limits/authentication.ts";
import { toSeconds } from "../../rate-limits/store.ts";
import type { Devices } from "../devices.ts";
import type { FactorProof } from "../sign-in-proof.ts";
import { incorrectFactor, type LoginError, tooManyAttempts } from "../verify-password.ts";
import { type PendingSignIn, useOf } from "./login-tokens.ts";

const INCORRECT_TOTP = incorrectFactor(
  "Incorrect code, or a code that was already used. Enter the current code of your authenticator app.",
);
const INCORRECT_RECOVERY_CODE = incorrectFactor(
  "Incorrect recovery code, or one that was already used. Enter another one.",
);

const RESET_REQUIRED: LoginError = {
  error:
    "Too many incorrect codes were entered. Sign in from a browser that you have used before, or use a recovery code or a passkey. If someone else entered them, they know your password: reset it.",
  status: 403,
  code: "password_reset_required",
};

type Options = Pick<Storage, "secondFactors" | "knownDevices" | "signInFailures"> & {
  devices: Pick<Devices, "tokenOf">;
  limits: Pick<AuthenticationLimits, "secondFactor" | "visit">;
  /** Tests and benchmarks turn all limits off. */
  isLimited: boolean;
};

/** Resolves to undefined if the pending sign-in was already completed. */
export type VerifyCode = ReturnType<typeof createVerifyCode>;

/**
 * Someone who knows the password must not keep the user out: only its own attempts limit a known device, and the
 * limits of an account don't apply to recovery codes, which can't be guessed.
 */
export function createVerifyCode(options: Options) {
  const { secondFactors, knownDevices, signInFailures, devices, limits, isLimited } = options;

  async function isKnown(ctx: Context, userId: string): Promise<boolean> {
    const token = isLimited ? devices.tokenOf(ctx) : undefined;
    return token !== undefined && knownDevices.attempt(userId, token);
  }

  async function admit(ctx: Context, userId: string): Promise<LoginError | undefined> {
    const wait = await limits.secondFactor.attempt(userId);
    if (wait) return tooManyAttempts(ctx, wait);
    if (!isLimited) return undefined;
    // NIST SP 800-63B-4 §3.2.2, which the window of the limit above doesn't meet.
    const admission = await signInFailures.attemptFactor(userId);
    if (admission.outcome === "blocked") return RESET_REQUIRED;
    if (admission.outcome === "delayed") return tooManyAttempts(ctx, toSeconds(admission.waitMs));
    return undefined;
  }

  async function useTotp(userId: string, totp: string, loginToken: SingleUse): Promise<CodeUse> {
    const secret = await secondFactors.totp.find(userId);
    const step = secret === undefined ? undefined : stepOfCode(secret, totp);
    return step === undefined ? "incorrect" : secondFactors.totp.useStep(userId, step, loginToken);
  }

  return async (
    ctx: Context,
    pending: PendingSignIn,
    { totp = "", recoveryCode }: { totp?: string; recoveryCode?: string },
  ): Promise<FactorProof | LoginError | undefined> => {
    const userId = pending.proof.accountId;
    const isFromKnownDevice = await isKnown(ctx, userId);
    if (!isFromKnownDevice) {
      const wait = recoveryCode ? await limits.visit("recoveryCode", ctx.ip) : 0;
      const refusal = wait ? tooManyAttempts(ctx, wait) : !recoveryCode && (await admit(ctx, userId));
      if (refusal) return refusal;
    }
    const outcome = recoveryCode
      ? await secondFactors.recoveryCodes.use(recoveryCode, { id: userId, address: ctx.ip }, useOf(pending))
      : await useTotp(userId, totp, useOf(pending));
    if (outcome === "too_late") return undefined;
    if (outcome === "incorrect") return recoveryCode ? INCORRECT_RECOVERY_CODE : INCORRECT_TOTP;
    if (!isFromKnownDevice) {
      await limits.secondFactor.succeeded(userId);
      if (isLimited) await signInFailures.resetFactor(userId);
    }
    return { method: recoveryCode ? "recovery_code" : "totp", amr: "otp" };
  };
}
