import { Provider } from "oidc-provider";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { configuration, type ProviderOptions } from "./configuration.ts";
import { applyOverrides } from "./overrides.ts";

/** Creates the authorization server: oidc-provider, configured, with a few overrides where it has no option. */
export function createProvider(
  options: ProviderOptions & { clients: ClientStore; authenticationLimits: AuthenticationLimits },
): Provider {
  const provider = new Provider(options.urls.base, configuration(options));
  applyOverrides(provider, options.clients, options.authenticationLimits);
  return provider;
}
