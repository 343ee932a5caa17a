import type { Context } from "koa";
import type { KnownDeviceStore } from "../../adapters/accounts/known-devices.ts";
import type { Admission, SignInFailureStore } from "../../adapters/accounts/sign-in-failures.ts";
import type { Account, AccountStore } from "../../adapters/accounts/store.ts";
import { sha256 } from "../../adapters/crypto/ids.ts";
import { Problem } from "../../resources/http/problem.ts";
import { isPossibleUsername } from "../credentials/names.ts";
import type { Passwords } from "../credentials/passwords.ts";
import { siteKeyOf } from "../http/client-ip.ts";
import type { SignInLimits } from "../rate-limits/authentication.ts";
import { toSeconds } from "../rate-limits/store.ts";
import type { Devices } from "./devices.ts";
import { enforceLimit, unauthorized } from "./error-handler.ts";
import { passwordProof, type SignInProof } from "./sign-in-proof.ts";

export function incorrectCredentials(): Problem {
  return unauthorized("invalid_credentials", "Incorrect username or password.");
}

// The same for unknown usernames.
const RESET_REQUIRED =
  "Too many incorrect passwords were entered for this username. Sign in from a browser that you have used before, or reset your password.";

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

/** Throws Problem. Incorrect names and passwords have the same one, so it doesn't reveal which was wrong. */
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

  async function admit(username: string, account: Account | undefined): Promise<void> {
    // A name that no user can have isn't worth a row.
    if (isLimited && isPossibleUsername(username))
      enforceAdmission(await signInFailures.attempt(username, account?.id), RESET_REQUIRED);
  }

  return async (ctx: Context, username: string, password: string): Promise<SignInProof> => {
    const known = await recognize(ctx, username);
    if (!known) enforceLimit(await limits.attempt(ctx.ip, username), "attempts");
    const account = known?.account ?? (await find(username));
    if (!known) await admit(username, account);
    const hash = account && !account.disabled ? account.passwordHash : null;
    const from = { network: siteKeyOf(ctx.ip), isKnownDevice: known !== undefined };
    if (!(await passwords.verify(hash, password, from)) || !account) throw incorrectCredentials();
    if (known) await knownDevices.undoAttempt(account.id, known.token);
    else if (isLimited) {
      await limits.succeeded(ctx.ip, username);
      await signInFailures.reset(username);
    }
    return passwordProof(account.id, sha256(account.passwordHash as string));
  };
}

/** Throws Problem unless an attempt may be made now. */
export function enforceAdmission(admission: Admission, resetRequired: string): void {
  if (admission.outcome === "blocked") throw new Problem(403, "password_reset_required", resetRequired);
  if (admission.outcome === "delayed") enforceLimit(toSeconds(admission.waitMs), "attempts");
}
