import type { Context } from "koa";
import type { Provider } from "oidc-provider";
import type { Keys } from "../keys/shared-keys.ts";
import { replaceKeyStore } from "./library-key-store.ts";

/** For how long clients may keep the public keys. A new key is published longer than that before it signs. Seconds. */
export const KEY_SET_MAX_AGE = 300;

/** Completes the response with the public keys (RFC 7517). */
export function completeKeySet(ctx: Context): void {
  if (ctx.status === 200) ctx.set("Cache-Control", `public, max-age=${KEY_SET_MAX_AGE}`);
}

/** Replaces the keys of a running provider. Requests in flight end with the keys that they began with, or the new ones. */
export function useKeys(provider: Provider, { jwks, cookies }: Keys): void {
  replaceKeyStore(provider, jwks);
  // Koa reads them with each request.
  provider.keys = cookies;
}
