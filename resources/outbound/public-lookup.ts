import type { LookupFunction } from "node:net";
import { isPublicAddress } from "./ssrf-guard.ts";

/** Why a request was not sent, for the person who configured the URL. */
export const NOT_PUBLIC = "The hostname resolves to an IP address that is not on the public internet.";

/**
 * Wraps a lookup so that it fails if any address of the hostname isn't public. The socket connects to the checked address, so
 * DNS rebinding has no effect. The agent's own check isn't enough: it treats unassigned IPv6 addresses as public.
 */
export function publicLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, done) =>
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const addresses = Array.isArray(found) ? found : [];
      const [first] = addresses;
      if (error || !first) return done(error ?? new Error("The hostname has no IP address."), "");
      if (!addresses.every(({ address }) => isPublicAddress(address))) return done(new Error(NOT_PUBLIC), "");
      return options.all ? done(null, addresses) : done(null, first.address, first.family);
    });
}
