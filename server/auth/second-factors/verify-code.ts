import type { Context } from "koa";
import type { CodeUse } from "../../../adapters/accounts/second-factors/recovery-codes.ts";
import type { Storage } from "../../../adapters/index.ts";
import type { SingleUse } from "../../../adapters/oauth/replay.ts";
import type { Problem } from "../../../resources/http/problem.ts";
import { stepOfCode } from "../../credentials/totp.ts";
import type { AuthenticationLimits } from "../../rate-limits/authentication.ts";
import type { Devices } from "../devices.ts";
import { enforceLimit, unauthorized } from "../error-handler.ts";
import type { FactorProof } from "../sign-in-proof.ts";
import { enforceAdmission } from "../verify-password.ts";
import type { PendingSignIn } from "./login-tokens.ts";

const INCORRECT_TOTP =
  "That code is incorrect or was already used. Enter the current code from your authenticator app.";
const INCORRECT_RECOVERY_CODE = "That recovery code is incorrect or was already used. Enter another one.";

const RESET_REQUIRED =
  "Too many incorrect codes were entered. Sign in from a browser that you have used before, or use a recovery code or a passkey. If someone else entered them, they know your password: reset it.";

type Options = Pick<Storage, "secondFactors" | "knownDevices" | "signInFailures"> & {
  devices: Pick<Devices, "tokenOf">;
  limits: Pick<AuthenticationLimits, "secondFactor" | "visit">;
  /** Tests and benchmarks turn all limits off. */
  isLimited: boolean;
};

/** Resolves to undefined if the pending sign-in was already completed. Throws Problem. */
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

  async function admit(userId: string): Promise<void> {
    enforceLimit(await limits.secondFactor.attempt(userId), "attempts");
    // NIST SP 800-63B-4 §3.2.2, which the window of the limit above doesn't meet.
    if (isLimited) enforceAdmission(await signInFailures.attemptFactor(userId), RESET_REQUIRED);
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
  ): Promise<FactorProof | undefined> => {
    const userId = pending.proof.accountId;
    const isFromKnownDevice = await isKnown(ctx, userId);
    if (!isFromKnownDevice) {
      if (recoveryCode) enforceLimit(await limits.visit("recovery-code", ctx.ip), "attempts");
      else await admit(userId);
    }
    const outcome = recoveryCode
      ? await secondFactors.recoveryCodes.use(recoveryCode, { id: userId, address: ctx.ip }, pending)
      : await useTotp(userId, totp, pending);
    if (outcome === "too_late") return undefined;
    if (outcome === "incorrect")
      throw incorrectFactor(recoveryCode ? INCORRECT_RECOVERY_CODE : INCORRECT_TOTP);
    if (!isFromKnownDevice) {
      await limits.secondFactor.succeeded(userId);
      if (isLimited) await signInFailures.resetFactor(userId);
    }
    return { method: recoveryCode ? "recovery_code" : "totp", amr: "otp" };
  };
}

export function incorrectFactor(detail: string): Problem {
  return unauthorized("invalid_second_factor", detail);
}
