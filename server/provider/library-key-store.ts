import type { JWK, Provider } from "oidc-provider";

type Module = { default(this: Provider, jwks: { keys: JWK[] }): void };

// The library builds its key store once, in the constructor of a provider, and has no option to replace it.
const path: string = "oidc-provider/lib/helpers/initialize_keystore.js";
const { default: initializeKeyStore } = (await import(path)) as Module;

/** Replaces the keys that a provider signs and verifies with, and those that it publishes. The first key signs. */
export function replaceKeyStore(provider: Provider, jwks: { keys: JWK[] }): void {
  initializeKeyStore.call(provider, jwks);
}
