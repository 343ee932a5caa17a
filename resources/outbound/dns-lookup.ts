import { Resolver } from "node:dns/promises";
import type { LookupFunction } from "node:net";

// Both tries fit into the connection timeout.
const DNS_TIMEOUT_MS = 1000;
const DNS_TRIES = 2;

/**
 * Creates a lookup that doesn't use the thread pool of `dns.lookup`. That pool has four threads per process, so one
 * customer's unresponsive name server could delay all deliveries and logins. The hosts file isn't read.
 * @param servers addresses of name servers; by default those of the system
 */
export function createDnsLookup(servers?: string[]): LookupFunction {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (servers) resolver.setServers(servers);
  return async function lookup(hostname, _options, done) {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const found = [...addressesOf(v4, 4), ...addressesOf(v6, 6)];
    if (found.length > 0) return done(null, found);
    done(lookupError(v4), "");
  };
}

function addressesOf(answer: PromiseSettledResult<string[]>, family: 4 | 6) {
  return answer.status === "fulfilled" ? answer.value.map((address) => ({ address, family })) : [];
}

/** Returns the error that `dns.lookup` would return. */
function lookupError(answer: PromiseSettledResult<string[]>): NodeJS.ErrnoException {
  const reason = answer.status === "rejected" ? (answer.reason as NodeJS.ErrnoException).code : undefined;
  const isUnknown = reason === "ENOTFOUND" || reason === "ENODATA";
  return Object.assign(new Error("the hostname was not resolved"), {
    code: isUnknown ? "ENOTFOUND" : "EAI_AGAIN",
  });
}
