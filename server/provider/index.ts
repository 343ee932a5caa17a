import type Koa from "koa";
import { Provider } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import type { RegisteredClientIds } from "../clients/registered-client-id.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { type AssertionOptions, createAuthenticateByAssertion } from "./client-assertions.ts";
import { configuration, type ProviderOptions } from "./configuration.ts";
import { type IdentityAssertionOptions, registerJwtBearer } from "./identity-assertions.ts";
import { compareHashedSecrets, findStoredClients } from "./seams/clients.ts";
import { detectReplaysAtOnce } from "./seams/proofs.ts";
import { checkBeforeUse, coverImpliedScopes } from "./seams/redemption.ts";
import { changeSessions } from "./seams/session-model.ts";
import { generateTokenIds, storeFields } from "./seams/stored-tokens.ts";
import { refuseUntrustedRedirects } from "./untrusted-redirects.ts";

type Options = ProviderOptions &
  AssertionOptions &
  IdentityAssertionOptions & {
    storage: Pick<Storage, "grants">;
    /** Absent if clients may not register. */
    registeredIds: RegisteredClientIds | undefined;
    authenticationLimits: AuthenticationLimits;
  };

export function createProvider(options: Options): Provider {
  const { clients, grants, replays } = options.storage;
  const provider = new Provider(options.urls.base, configuration(options));

  findStoredClients(provider, clients, options.registeredIds);
  compareHashedSecrets(provider, clients);
  storeFields(provider);
  generateTokenIds(provider);
  checkBeforeUse(provider, grants);
  coverImpliedScopes(provider);
  detectReplaysAtOnce(provider, replays);
  changeSessions(provider);

  registerJwtBearer(provider, options);
  refuseUntrustedRedirects(provider);
  return provider;
}

/** Extends the contexts of the application that the provider is mounted in. */
export function extendContexts(
  app: Koa,
  provider: Provider,
  options: AssertionOptions & Pick<Options, "authenticationLimits">,
): void {
  const { assertions } = options.authenticationLimits;
  const authenticateByAssertion = createAuthenticateByAssertion(provider, options, assertions);
  Object.assign(app.context, { authenticateByAssertion });
}
