import { Provider } from "oidc-provider";
import { configuration, type ProviderOptions } from "./configuration.ts";
import { applyOverrides, type OverrideOptions } from "./overrides.ts";

/** Creates the authorization server: oidc-provider, configured, with a few overrides where it has no option. */
export function createProvider(options: ProviderOptions & OverrideOptions): Provider {
  const provider = new Provider(options.urls.base, configuration(options));
  applyOverrides(provider, options);
  return provider;
}
