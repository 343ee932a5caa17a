import { Provider } from "oidc-provider";

type ReadGrant = { id: string; payload: string };

const read = new WeakMap<object, ReadGrant>();

/** Keeps an active grant that was read together with a code or refresh token, for this request. */
export function keepGrant(grant: ReadGrant): void {
  if (Provider.ctx) read.set(Provider.ctx, grant);
}

/** Returns the payload of the grant that this request has read, once: a later read may find it revoked. */
export function takeGrant(id: string): string | undefined {
  const grant = Provider.ctx && read.get(Provider.ctx);
  if (!Provider.ctx || grant?.id !== id) return undefined;
  read.delete(Provider.ctx);
  return grant.payload;
}
