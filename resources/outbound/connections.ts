import http from "node:http";
import https from "node:https";
import type { LookupFunction } from "node:net";
import { RequestFilteringHttpsAgent } from "request-filtering-agent";
import { createDnsLookup } from "./dns-lookup.ts";
import { publicLookup } from "./public-lookup.ts";
import { type AllowedHosts, isAllowedHost, isPublicAddress } from "./ssrf-guard.ts";

/** The replaceable parts of outbound connections. */
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

/** How to connect to the host of a URL. */
export type Connection = {
  /** The options of `http.request` or `https.request`. */
  options: { agent: http.Agent; lookup?: LookupFunction; port?: number };
  /** Returns whether the address that a socket has connected to is acceptable. */
  isAllowed(address: string): boolean;
};

/** How connections are reused; without it, each request has its own. */
export type Reuse = {
  /** The maximum number of connections to a host. Further requests wait for one. */
  maxSockets: number;
  /** How many unused connections to a host stay open. */
  maxFreeSockets: number;
  /** How long an unused connection stays open, unless the server says that it closes it earlier. */
  idleMs: number;
};

/**
 * Creates the function that decides how to connect: to allowed hosts as they are, to all others only at public
 * addresses. Connections never go through a proxy, even if the environment configures one. Only requests to the same host
 * and port share a connection, so its address was checked for that host.
 */
export function createConnections(
  allowed: AllowedHosts,
  { lookup, allowedLookup, allowedPort: port, ca }: ConnectionDefaults = {},
  reuse?: Reuse,
): (url: URL) => Connection {
  const sockets = reuse ? socketOptions(reuse) : { keepAlive: false };
  const tls = { ...sockets, maxCachedSessions: 0, ...(ca && { ca }) };
  const guarded = new RequestFilteringHttpsAgent(tls);
  const secure = new https.Agent(tls);
  const plain = new http.Agent(sockets);
  const onlyPublic = publicLookup(lookup ?? createDnsLookup());
  return (url) => {
    if (!isAllowedHost(url, allowed)) {
      return { options: { agent: guarded, lookup: onlyPublic }, isAllowed: isPublicAddress };
    }
    const agent = url.protocol === "https:" ? secure : plain;
    const resolver = allowedLookup && { lookup: allowedLookup };
    return { options: { agent, ...resolver, ...(port && { port }) }, isAllowed: () => true };
  };
}

function socketOptions({ maxSockets, maxFreeSockets, idleMs }: Reuse): http.AgentOptions {
  return { keepAlive: true, maxSockets, maxFreeSockets, timeout: idleMs, scheduling: "lifo" };
}
