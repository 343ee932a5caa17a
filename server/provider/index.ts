import { Provider } from "oidc-provider";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import type { ReplayedGrantStore } from "../../adapters/oauth/oidc/replays.ts";
import type { ReplayStore } from "../../adapters/oauth/replay.ts";
import type { KeySets } from "../assertions/key-sets.ts";
import { createClientKeys } from "../clients/client-keys.ts";
import type { RegisteredClientIds } from "../clients/registered-client-id.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { createAuthenticateByAssertion } from "./client-assertions.ts";
import { configuration, type ProviderOptions } from "./configuration.ts";
import { type IdentityAssertionOptions, registerJwtBearer } from "./identity-assertions.ts";
import { findStoredClients } from "./seams/client-lookup.ts";
import { compareHashedSecrets } from "./seams/client-secrets.ts";
import type { ProviderInternals } from "./seams/endpoint-steps.ts";
import { checkBeforeUse } from "./seams/redemption.ts";
import { coverImpliedScopes } from "./seams/refresh-scopes.ts";
import { detectReplaysAtOnce } from "./seams/replay-detection.ts";
import { changeSessions } from "./seams/session-model.ts";
import { storeFields } from "./seams/stored-fields.ts";
import { generateTokenIds } from "./seams/token-ids.ts";
import { useAssertionsBeforeIssuing } from "./seams/workload-tokens.ts";
import { refuseUntrustedRedirects } from "./untrusted-redirects.ts";
import type { AuthenticateWorkload } from "./workloads.ts";

type Options = ProviderOptions & {
  clients: ClientStore;
  replays: ReplayStore;
  replayedGrants: ReplayedGrantStore;
  keySets: KeySets;
  authenticateWorkload: AuthenticateWorkload;
  /** Absent if clients may not register. */
  registeredIds: RegisteredClientIds | undefined;
  authenticationLimits: Pick<AuthenticationLimits, "assertions">;
  identityAssertions: IdentityAssertionOptions;
};

/** Creates the authorization server: oidc-provider, configured, with seams where it has no option. */
export function createProvider(options: Options): Provider {
  const { clients, replays } = options;
  const provider = new Provider(options.urls.base, configuration(options));

  findStoredClients(provider, clients, options.registeredIds);
  compareHashedSecrets(provider, clients);
  storeFields(provider);
  generateTokenIds(provider);
  checkBeforeUse(provider, options.replayedGrants);
  coverImpliedScopes(provider);
  useAssertionsBeforeIssuing(provider);
  detectReplaysAtOnce(provider, replays);
  changeSessions(provider);

  extendContexts(provider, options);
  registerJwtBearer(provider, options.identityAssertions);
  refuseUntrustedRedirects(provider);
  return provider;
}

/** Adds to the prototypes of Koa's requests and contexts, which belong to the application. */
function extendContexts(provider: Provider, options: Options): void {
  const { context, request } = provider as unknown as ProviderInternals & { request: object };
  // URLs and cookies follow the issuer, not what a proxy says.
  const protocol = new URL(provider.issuer).protocol.slice(0, -1);
  Object.defineProperty(request, "protocol", { configurable: true, get: () => protocol });
  Object.assign(context, {
    authenticateByAssertion: createAuthenticateByAssertion({
      ...options,
      provider,
      limits: options.authenticationLimits.assertions,
      clientKeys: createClientKeys(options.clients, (error) => provider.emit("error", error)),
    }),
  });
}
