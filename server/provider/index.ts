import { Provider } from "oidc-provider";
import type { ClientStore } from "../../adapters/clients.ts";
import type { Limits } from "../limits.ts";
import { cacheClients } from "./client-cache.ts";
import { configuration, type ProviderOptions } from "./configuration.ts";
import { override } from "./overrides.ts";

/** The authorization server: oidc-provider, configured, with the few overrides that configuration does not reach. */
export function createProvider(
  options: ProviderOptions & { clients: ClientStore; limits: Limits },
): Provider {
  const provider = new Provider(options.addresses.base, configuration(options));
  cacheClients(provider, options.clients);
  override(provider, options.clients, options.limits);
  return provider;
}
