import type { Context } from "koa";
import { credentialOf, type IdentityStore } from "../../adapters/accounts/identities.ts";
import type { SecondFactorStore } from "../../adapters/accounts/second-factors/index.ts";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import { sha256 } from "../../adapters/crypto/hash.ts";
import { isMultiFactor } from "../provider/sessions.ts";
import type { Devices } from "./devices.ts";
import type { LoginTokens } from "./second-factor/login-tokens.ts";
import type { Sessions } from "./sessions.ts";
import type { SignInProof } from "./sign-in-proof.ts";

/** Where the second factor is asked for. */
export const SECOND_FACTOR_PATH = "/auth/second-factor";

/**
 * Completes a sign-in in a browser: starts the session and redirects to `returnTo`. If the account has a second factor that
 * the user has not proved, redirects to the page that asks for it instead. Returns false if the password was changed, or
 * the passkey or SSO identity removed, in the meantime.
 */
export type CompleteSignIn = (
  ctx: Context,
  proof: SignInProof,
  returnTo: string,
  /** Responds instead of the redirect to `returnTo`. */
  respond?: () => Promise<void>,
) => Promise<boolean>;

type Options = {
  accounts: AccountStore;
  identities: Pick<IdentityStore, "listByUser">;
  secondFactors: Pick<SecondFactorStore, "isEnabled" | "find">;
  sessions: Sessions;
  devices: Devices;
  loginTokens: LoginTokens;
};

export function createCompleteSignIn(options: Options): CompleteSignIn {
  const { sessions, devices, loginTokens } = options;
  return async (ctx, proof, returnTo, respond = async () => redirect(ctx, returnTo)) => {
    if (await needsSecondFactor(options, proof)) {
      loginTokens.keep(ctx, proof, returnTo);
      redirect(ctx, SECOND_FACTOR_PATH);
      return true;
    }
    if (!(await sessions.begin(ctx, proof, () => isProofCurrent(options, proof)))) return false;
    await devices.remember(ctx, proof.accountId);
    await respond();
    return true;
  };
}

/** Returns whether a second factor has to be proved before a session or tokens are issued. */
export async function needsSecondFactor(
  { secondFactors }: { secondFactors: Pick<SecondFactorStore, "isEnabled"> },
  proof: SignInProof,
): Promise<boolean> {
  return !isMultiFactor(proof) && (await secondFactors.isEnabled(proof.accountId));
}

/**
 * Returns whether a proof still holds: the account is enabled, and the password has not been changed since. A change ends the sessions and tokens that
 * exist then, so ask after storing a new one, and delete that one if false.
 */
export async function isStillValid(
  accounts: AccountStore,
  { accountId, passwordMark }: SignInProof,
): Promise<boolean> {
  if (passwordMark === undefined) return accounts.isEnabled(accountId);
  const passwordHash = (await accounts.find(accountId))?.passwordHash ?? null;
  if (passwordHash === null || sha256(passwordHash) !== passwordMark) return false;
  return accounts.hasHash(accountId, passwordHash);
}

/** Returns whether a proof still holds, including the second factor and the passkey or SSO identity that the session depends on. */
async function isProofCurrent(
  { accounts, identities, secondFactors }: Options,
  proof: SignInProof,
): Promise<boolean> {
  const { accountId, credential, methods, passkey } = proof;
  // First, because it waits for a concurrent removal.
  if (!(await isStillValid(accounts, proof))) return false;
  const { totp, passkeys } = await secondFactors.find(accountId);
  if (methods.includes("totp") && !totp) return false;
  if (passkey !== undefined && !passkeys.some(({ id }) => id === passkey)) return false;
  if (credential === undefined) return true;
  if (passkeys.some(({ id }) => id === credential)) return true;
  const linked = await identities.listByUser(accountId);
  return linked.some((identity) => credentialOf(identity) === credential);
}

function redirect(ctx: Context, to: string): void {
  ctx.status = 303; // RFC 9700 §4.12: never 307
  ctx.redirect(to);
}
