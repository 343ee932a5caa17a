import type { Context } from "koa";
import type { KnownDeviceStore } from "../../adapters/accounts/known-devices.ts";
import type { SignInFailureStore } from "../../adapters/accounts/sign-in-failures.ts";
import type { Account, AccountStore } from "../../adapters/accounts/store.ts";
import { sha256 } from "../../adapters/crypto/hash.ts";
import { isPossibleUsername } from "../credentials/names.ts";
import { PasswordQueueFull, type Passwords } from "../credentials/passwords.ts";
import { siteKeyOf } from "../http/client-ip.ts";
import type { SignInLimits } from "../rate-limits/authentication.ts";
import { describeWait, toSeconds } from "../rate-limits/store.ts";
import type { Devices } from "./devices.ts";
import { passwordProof, type SignInProof } from "./sign-in-proof.ts";

export type LoginError = { error: string; status: number; code: LoginErrorCode };
type LoginErrorCode =
  | "invalid_credentials"
  | "invalid_second_factor"
  | "too_many_requests"
  | "password_reset_required"
  | "busy";

export const INCORRECT_CREDENTIALS: LoginError = {
  error: "Incorrect username or password.",
  status: 400,
  code: "invalid_credentials",
};

export function incorrectFactor(error: string): LoginError {
  return { error, status: 400, code: "invalid_second_factor" };
}

// The same for unknown usernames.
const RESET_REQUIRED: LoginError = {
  error:
    "Too many incorrect passwords were entered for this username. Sign in from a browser that you have used before, or reset your password.",
  status: 403,
  code: "password_reset_required",
};

type Options = {
  accounts: Pick<AccountStore, "findByUsername">;
  knownDevices: KnownDeviceStore;
  signInFailures: SignInFailureStore;
  devices: Pick<Devices, "tokenOf">;
  passwords: Pick<Passwords, "verify">;
  limits: SignInLimits;
  /** Tests and benchmarks turn all limits off. */
  isLimited: boolean;
};

/** Every failure has the same message, so it doesn't reveal which one was wrong. */
export type VerifyPassword = ReturnType<typeof createVerifyPassword>;

/**
 * Unknown, disabled and SSO-only users take as long as a wrong password, so usernames can't be enumerated. Only its
 * own attempts limit a known device, so guesses from elsewhere don't keep its user out.
 */
export function createVerifyPassword(options: Options) {
  const { accounts, knownDevices, signInFailures, devices, passwords, limits, isLimited } = options;

  const find = async (username: string) =>
    isPossibleUsername(username) ? accounts.findByUsername(username) : undefined;

  async function recognize(ctx: Context, username: string) {
    const token = isLimited ? devices.tokenOf(ctx) : undefined;
    const account = token && (await find(username));
    if (!account || !(await knownDevices.attempt(account.id, token))) return undefined;
    return { account, token };
  }

  async function admit(ctx: Context, username: string, account: Account | undefined) {
    // A name that no user can have isn't worth a row.
    if (!isLimited || !isPossibleUsername(username)) return undefined;
    const admission = await signInFailures.attempt(username, account?.id);
    if (admission.outcome === "blocked") return RESET_REQUIRED;
    if (admission.outcome === "delayed") return tooManyAttempts(ctx, toSeconds(admission.waitMs));
    return undefined;
  }

  return async (ctx: Context, username: string, password: string): Promise<SignInProof | LoginError> => {
    const known = await recognize(ctx, username);
    const wait = known ? 0 : await limits.attempt(ctx.ip, username);
    if (wait) return tooManyAttempts(ctx, wait);
    const account = known?.account ?? (await find(username));
    const refusal = known ? undefined : await admit(ctx, username, account);
    if (refusal) return refusal;
    try {
      const hash = account && !account.disabled ? account.passwordHash : null;
      const from = { network: siteKeyOf(ctx.ip), isKnownDevice: known !== undefined };
      if (!(await passwords.verify(hash, password, from)) || !account) return INCORRECT_CREDENTIALS;
    } catch (error) {
      if (!(error instanceof PasswordQueueFull)) throw error;
      ctx.set("Retry-After", "2");
      const message = "Too many sign-ins are in progress. Try again in a moment.";
      return { error: message, status: 503, code: "busy" };
    }
    if (known) await knownDevices.undoAttempt(account.id, known.token);
    else if (isLimited) {
      await limits.succeeded(ctx.ip, username);
      await signInFailures.reset(username);
    }
    return passwordProof(account.id, sha256(account.passwordHash as string));
  };
}

export function tooManyAttempts(ctx: Context, seconds: number): LoginError {
  ctx.set("Retry-After", String(seconds));
  return {
    error: `Too many attempts. Try again in ${describeWait(seconds)}.`,
    status: 429,
    code: "too_many_requests",
  };
}
