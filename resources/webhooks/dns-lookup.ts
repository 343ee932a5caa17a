import { Resolver } from "node:dns/promises";
import type { LookupFunction } from "node:net";

// Within the time that a connection may take.
const DNS_TIMEOUT_MS = 1000;
const DNS_TRIES = 2;

/**
 * Resolves names beside the threads that `dns.lookup` waits on: these are four for the whole process, and whoever keeps
 * a name server that does not answer would hold up everybody's deliveries and sign-ins. It reads no hosts file.
 * @param servers addresses of name servers; absent, those of the system
 */
export function createLookup(servers?: string[]): LookupFunction {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (servers) resolver.setServers(servers);
  return async function lookup(hostname, _options, done) {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const found = [...addressesOf(v4, 4), ...addressesOf(v6, 6)];
    if (found.length > 0) return done(null, found);
    done(failure(v4), "");
  };
}

function addressesOf(answer: PromiseSettledResult<string[]>, family: 4 | 6) {
  return answer.status === "fulfilled" ? answer.value.map((address) => ({ address, family })) : [];
}

/** In the words of `dns.lookup`. */
function failure(answer: PromiseSettledResult<string[]>): NodeJS.ErrnoException {
  const reason = answer.status === "rejected" ? (answer.reason as NodeJS.ErrnoException).code : undefined;
  const isUnknown = reason === "ENOTFOUND" || reason === "ENODATA";
  return Object.assign(new Error("the name was not resolved"), {
    code: isUnknown ? "ENOTFOUND" : "EAI_AGAIN",
  });
}
