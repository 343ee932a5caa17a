import type { Context } from "koa";
import type { KnownDeviceStore } from "../../../adapters/accounts/known-devices.ts";
import type { SecondFactorStore } from "../../../adapters/accounts/second-factors/index.ts";
import type { CodeUse } from "../../../adapters/accounts/second-factors/use-code.ts";
import type { SignInFailureStore } from "../../../adapters/accounts/sign-in-failures.ts";
import type { SingleUse } from "../../../adapters/oauth/replay.ts";
import { stepOfCode } from "../../credentials/totp.ts";
import type { AuthenticationLimits } from "../../rate-limits/authentication.ts";
import { toSeconds } from "../../rate-limits/store.ts";
import type { Devices } from "../devices.ts";
import type { FactorProof } from "../sign-in-proof.ts";
import { type LoginError, tooManyAttempts } from "../verify-password.ts";
import { type PendingSignIn, useOf } from "./login-tokens.ts";

/** The codes that a user may enter; one of them. */
export type FactorCodes = { totp?: string; recoveryCode?: string };

/** Completes a pending sign-in with a code that the user types in. Resolves to undefined if it was already completed. */
export type VerifyCode = (
  ctx: Context,
  pending: PendingSignIn,
  codes: FactorCodes,
) => Promise<FactorProof | LoginError | undefined>;

const INCORRECT_TOTP: LoginError = {
  error: "Incorrect code, or a code that was already used. Enter the current code of your authenticator app.",
  status: 400,
  code: "invalid_second_factor",
};
const INCORRECT_RECOVERY_CODE: LoginError = {
  error: "Incorrect recovery code, or one that was already used. Enter another one.",
  status: 400,
  code: "invalid_second_factor",
};

const RESET_REQUIRED: LoginError = {
  error:
    "Too many incorrect codes were entered. Sign in from a browser that you have used before, use a recovery code or a passkey, or reset your password, which someone else may know.",
  status: 403,
  code: "password_reset_required",
};

type Options = {
  secondFactors: Pick<SecondFactorStore, "totp" | "recoveryCodes">;
  knownDevices: Pick<KnownDeviceStore, "attempt">;
  signInFailures: Pick<SignInFailureStore, "attemptFactor" | "resetFactor">;
  devices: Pick<Devices, "tokenOf">;
  limits: Pick<AuthenticationLimits, "secondFactor" | "visit">;
  /** False turns all limits off, for tests and benchmarks. */
  isLimited: boolean;
};

/**
 * Creates the check of codes. As with passwords, a known device is limited by its own attempts only: someone who knows the
 * password could otherwise keep the user out. For the same reason, the limits of an account don't apply to recovery codes,
 * which can't be guessed.
 */
export function createVerifyCode(options: Options): VerifyCode {
  const { secondFactors, knownDevices, signInFailures, devices, limits, isLimited } = options;

  async function isKnown(ctx: Context, userId: string): Promise<boolean> {
    const token = isLimited ? devices.tokenOf(ctx) : undefined;
    return token !== undefined && knownDevices.attempt(userId, token);
  }

  /** Counts a code of an authenticator app from an unknown device. Returns why it is rejected. */
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

  return async (ctx, pending, { totp = "", recoveryCode }) => {
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
