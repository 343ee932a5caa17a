import type { Context } from "koa";
import type { SecondFactorStore } from "../../../adapters/accounts/second-factors/index.ts";
import type { SignInFailureStore } from "../../../adapters/accounts/sign-in-failures.ts";
import { stepOfCode } from "../../credentials/totp.ts";
import type { AuthenticationLimits } from "../../rate-limits/authentication.ts";
import { toSeconds } from "../../rate-limits/store.ts";
import type { FactorProof } from "../sign-in-proof.ts";
import { type LoginError, tooManyAttempts } from "../verify-password.ts";

/** The codes that a user may enter; one of them. */
export type FactorCodes = { totp?: string; recoveryCode?: string };

/** Verifies a second factor that the user types in. */
export type VerifyCode = (
  ctx: Context,
  userId: string,
  codes: FactorCodes,
) => Promise<FactorProof | LoginError>;

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
    "Too many incorrect codes were entered. Use a recovery code or a passkey, or reset your password, which someone else may know.",
  status: 403,
  code: "password_reset_required",
};

type Options = {
  secondFactors: Pick<SecondFactorStore, "totp" | "recoveryCodes">;
  signInFailures: Pick<SignInFailureStore, "attemptFactor" | "resetFactor">;
  limits: AuthenticationLimits;
  /** False turns all limits off, for tests and benchmarks. */
  isLimited: boolean;
};

export function createVerifyCode(options: Options): VerifyCode {
  const { secondFactors: factors, signInFailures, limits, isLimited } = options;

  async function succeeded(userId: string): Promise<void> {
    await limits.secondFactor.succeeded(userId);
    if (isLimited) await signInFailures.resetFactor(userId);
  }

  return async (ctx, userId, { totp = "", recoveryCode }) => {
    const wait = await limits.secondFactor.attempt(userId);
    if (wait) return tooManyAttempts(ctx, wait);
    if (recoveryCode) {
      const actor = { id: userId, address: ctx.ip };
      if (!(await factors.recoveryCodes.use(recoveryCode, actor))) return INCORRECT_RECOVERY_CODE;
      await succeeded(userId);
      return { method: "recovery_code", amr: "otp" };
    }
    if (isLimited) {
      // NIST SP 800-63B-4 §3.2.2, which the window of the limit above doesn't meet.
      const admission = await signInFailures.attemptFactor(userId);
      if (admission.outcome === "blocked") return RESET_REQUIRED;
      if (admission.outcome === "delayed") return tooManyAttempts(ctx, toSeconds(admission.waitMs));
    }
    const secret = await factors.totp.find(userId);
    const step = secret === undefined ? undefined : stepOfCode(secret, totp);
    if (step === undefined || !(await factors.totp.useStep(userId, step))) return INCORRECT_TOTP;
    await succeeded(userId);
    return { method: "totp", amr: "otp" };
  };
}
