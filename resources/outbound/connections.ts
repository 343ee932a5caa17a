import { Resolver } from "node:dns/promises";
import http from "node:http";
import https from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { type AllowedHosts, isAllowedHost, isPublicAddress, mayBePublic } from "./ssrf-guard.ts";

export type ConnectionDefaults = {
  /** Resolves a hostname that isn't on the allowlist to all of its addresses. */
  lookup?: LookupFunction;
  /** Resolves a hostname on the allowlist, instead of the operating system. */
  allowedLookup?: LookupFunction;
  /** The port of the hosts on the allowlist, instead of the one in the URL. */
  allowedPort?: number;
  /** The root certificates in PEM, instead of those of Node. */
  ca?: string;
};

/** How many connections to a host there are, how many unused ones stay open and how long, if the server allows it. */
type Reuse = { maxSockets: number; maxFreeSockets: number; timeout: number };

/**
 * Returns the function that starts a request. Allowed hosts are used as they are, others only at public addresses:
 * otherwise, the request fails with NOT_PUBLIC. No connection is shared between hosts.
 * @throws NOT_PUBLIC for a private address, or a name that is only local, as the host of the URL
 */
export function createConnections(
  allowed: AllowedHosts,
  { lookup, allowedLookup, allowedPort: port, ca }: ConnectionDefaults = {},
  reuse?: Reuse,
): (url: URL, options: https.RequestOptions) => http.ClientRequest {
  const sockets: http.AgentOptions = reuse
    ? { ...reuse, keepAlive: true, scheduling: "lifo" }
    : { keepAlive: false };
  const tls = { ...sockets, maxCachedSessions: 0, ...(ca && { ca }) };
  const guarded = new https.Agent(tls);
  const secure = new https.Agent(tls);
  const plain = new http.Agent(sockets);
  const onlyPublic = publicLookup(lookup ?? createDnsLookup());
  return function startRequest(url, options) {
    const isSecure = url.protocol === "https:";
    const { request: start } = isSecure ? https : http;
    if (isAllowedHost(url, allowed)) {
      const resolver = allowedLookup && { lookup: allowedLookup };
      return start(url, { ...options, agent: isSecure ? secure : plain, ...resolver, ...(port && { port }) });
    }
    // Node makes no lookup for an IP address.
    if (!mayBePublic(url.hostname)) throw new Error(NOT_PUBLIC);
    const request = start(url, { ...options, agent: guarded, lookup: onlyPublic });
    return request.on("socket", (socket: Socket) => {
      if (request.reusedSocket) return;
      socket.once("connect", () => {
        if (!isPublicAddress(socket.remoteAddress ?? "")) request.destroy(new Error(NOT_PUBLIC));
      });
    });
  };
}

// Both tries fit into the connection timeout.
const DNS_TIMEOUT_MS = 1000;
const DNS_TRIES = 2;

/** `dns.lookup` has four threads: one unresponsive name server could delay all deliveries and logins. */
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

function lookupError(answer: PromiseSettledResult<string[]>): NodeJS.ErrnoException {
  const reason = answer.status === "rejected" ? (answer.reason as NodeJS.ErrnoException).code : undefined;
  const isUnknown = reason === "ENOTFOUND" || reason === "ENODATA";
  return Object.assign(new Error("the hostname was not resolved"), {
    code: isUnknown ? "ENOTFOUND" : "EAI_AGAIN",
  });
}

export const NOT_PUBLIC = "The hostname resolves to an IP address that is not on the public internet.";

/** The socket connects to a checked address, against DNS rebinding. */
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
