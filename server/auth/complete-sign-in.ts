import type { Context } from "koa";
import { credentialOf } from "../../adapters/accounts/identities.ts";
import { sha256 } from "../../adapters/crypto/ids.ts";
import type { Storage } from "../../adapters/index.ts";
import { seeOther } from "../http/redirects.ts";
import { isMultiFactor } from "../provider/seams/session-model.ts";
import type { Devices } from "./devices.ts";
import type { LoginTokens } from "./second-factors/login-tokens.ts";
import type { Sessions } from "./sessions.ts";
import type { createSignInAudit } from "./sign-in-audit.ts";
import type { SignInProof } from "./sign-in-proof.ts";

export const SECOND_FACTOR_PATH = "/auth/second-factor";

type Stores = Pick<Storage, "accounts" | "identities" | "secondFactors">;
type Options = {
  storage: Stores;
  sessions: Sessions;
  devices: Devices;
  signInAudit: ReturnType<typeof createSignInAudit>;
  loginTokens: LoginTokens;
};

/**
 * The returned function calls `respond`, if given, instead of redirecting to `returnTo`. It resolves to false if the
 * password was changed, or the passkey or SSO identity removed, in the meantime.
 */
export function createCompleteSignIn({ storage, sessions, devices, signInAudit, loginTokens }: Options) {
  return async (
    ctx: Context,
    proof: SignInProof,
    returnTo: string,
    respond = async () => seeOther(ctx, returnTo),
  ): Promise<boolean> => {
    if (await needsSecondFactor(storage, proof)) {
      loginTokens.keep(ctx, proof, returnTo);
      seeOther(ctx, SECOND_FACTOR_PATH);
      return true;
    }
    if (!(await sessions.begin(ctx, proof, () => isProofCurrent(storage, proof)))) return false;
    await devices.remember(ctx, proof.accountId);
    await signInAudit.signedIn(ctx, proof.accountId);
    await respond();
    return true;
  };
}

export async function needsSecondFactor(
  { secondFactors }: Pick<Storage, "secondFactors">,
  proof: SignInProof,
): Promise<boolean> {
  return !isMultiFactor(proof) && (await secondFactors.isEnabled(proof.accountId));
}

/** A password change ends existing sessions and tokens: ask after storing a new one, and delete that one if false. */
export async function isStillValid(
  accounts: Storage["accounts"],
  { accountId, passwordMark }: SignInProof,
): Promise<boolean> {
  if (passwordMark === undefined) return accounts.isEnabled(accountId);
  const passwordHash = (await accounts.find(accountId))?.passwordHash ?? null;
  if (passwordHash === null || sha256(passwordHash) !== passwordMark) return false;
  return accounts.hasHash(accountId, passwordHash);
}

async function isProofCurrent(stores: Stores, proof: SignInProof): Promise<boolean> {
  const { accounts, identities, secondFactors } = stores;
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
