import type { JWK, Provider } from "oidc-provider";
import type { Keys } from "../../keys/shared-keys.ts";

/**
 * Seam: the keys of a running provider are replaced.
 * No option: oidc-provider builds its key store once, in the constructor.
 * Upstream would have to offer: a method that replaces `jwks`.
 */

type Module = { default(this: Provider, jwks: { keys: JWK[] }): void };

const path: string = "oidc-provider/lib/helpers/initialize_keystore.js";
const { default: initializeKeyStore } = (await import(path)) as Module;

/**
 * Replaces the keys that a provider signs and verifies with, and those that it publishes; the first one signs. Requests
 * in flight end with the keys that they began with, or the new ones.
 */
export function useKeys(provider: Provider, { jwks, cookies }: Keys): void {
  initializeKeyStore.call(provider, jwks);
  // Koa reads them with each request.
  provider.keys = cookies;
}
