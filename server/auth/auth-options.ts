import type { Provider } from "oidc-provider";
import type { Passwords } from "../credentials/passwords.ts";
import type { Dependencies } from "../dependencies.ts";
import { createCsrf } from "../http/csrf.ts";
import type { OnError } from "../http/error-pages.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { createCompleteSignIn } from "./complete-sign-in.ts";
import { createDevices } from "./devices.ts";
import { createFirstPartyTokens } from "./first-party-tokens.ts";
import { createLoginTokens } from "./second-factors/login-tokens.ts";
import { createPasskeyOption, createRelyingParty } from "./second-factors/passkeys.ts";
import { createVerifyCode } from "./second-factors/verify-code.ts";
import { createSessions } from "./sessions.ts";
import { createSignInAudit } from "./sign-in-audit.ts";
import { createIdentityProvider, createSsoOption } from "./sso/identity-provider.ts";
import { createTransactions } from "./sso/transactions.ts";
import { createVerifyPassword } from "./verify-password.ts";

export type AuthOptions = Dependencies & ReturnType<typeof createAuthOptions>;

export function createAuthOptions(
  { settings, urls, storage, keys, tracing, passwords }: Dependencies & { passwords: Passwords },
  provider: Provider,
  authenticationLimits: AuthenticationLimits,
  onError: OnError,
) {
  const { base } = urls;
  const { accounts, knownDevices, replays, secondFactors, signInFailures } = storage;
  const signInAudit = createSignInAudit(accounts, storage.memberEvents, onError);
  const devices = createDevices(knownDevices, base);
  const checks = { knownDevices, signInFailures, devices, isLimited: settings.RATE_LIMIT };
  const sessions = createSessions(provider, storage, base);
  const callback = `${base}/auth/sso/callback`;
  const trace = tracing?.traceOutgoing("traceparent");
  const identityProvider = createIdentityProvider(settings, callback, onError, trace);
  const { passkeys } = secondFactors;
  const relyingParty = createRelyingParty({ base, secret: keys.signing, replays, passkeys });
  const loginTokens = createLoginTokens(keys.signing, replays, base);
  return {
    provider,
    authenticationLimits,
    onError,
    base,
    passwords,
    signInAudit,
    devices,
    sessions,
    identityProvider,
    relyingParty,
    loginTokens,
    csrf: createCsrf(keys.signing),
    signIn: signInAudit.verifyPassword(
      createVerifyPassword({ ...checks, accounts, passwords, limits: authenticationLimits.signIn }),
    ),
    verifyCode: signInAudit.verifyCode(
      createVerifyCode({ ...checks, secondFactors, limits: authenticationLimits }),
    ),
    tokens: createFirstPartyTokens(provider, storage, base),
    ssoOption: createSsoOption(identityProvider),
    passkeyOption: createPasskeyOption(relyingParty),
    transactions: createTransactions(base),
    completeSignIn: createCompleteSignIn({ storage, sessions, devices, signInAudit, loginTokens }),
  };
}
