import { createHash, timingSafeEqual } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { Context } from "koa";
import { parseIpAddress } from "../http/ip-address.ts";

// What a proxy adds to the requests that it passes on.
const PROXY_HEADER = /^(forwarded|x-forwarded-.+|x-real-ip|via)$/;
const BEARER = /^bearer +(\S+)$/i;

/** Who may read what describes the process itself. */
export type OperatorAccess = {
  /** The host of `BASE_URL`. */
  publicHost: string;
  /** `METRICS_TOKEN`, if it is set. */
  token?: string | undefined;
};

/**
 * Returns whether a request comes directly from this machine, or carries `METRICS_TOKEN` as its bearer token. If the
 * service is public, a request for another host than this machine came through a proxy, even if its connection comes from
 * this machine: proxies may pass on any name, with a port or a final dot.
 */
export function isOperator(ctx: Context, { publicHost, token }: OperatorAccess): boolean {
  return isLocal(ctx, publicHost) || (token !== undefined && hasToken(ctx, token));
}

function isLocal(ctx: Context, publicHost: string): boolean {
  if (Object.keys(ctx.headers).some((name) => PROXY_HEADER.test(name))) return false;
  if (!isLoopback(ctx.req.socket.remoteAddress ?? "")) return false;
  return isLoopbackHost(publicHost) || isLoopbackHost(ctx.get("host"));
}

function isLoopback(address: string): boolean {
  const ip = parseIpAddress(address);
  return ip instanceof ipaddr.IPv4 || ip instanceof ipaddr.IPv6 ? ip.range() === "loopback" : false;
}

function isLoopbackHost(host: string): boolean {
  const hostname = URL.parse(`http://${host}`)?.hostname ?? "";
  return hostname === "localhost" || isLoopback(hostname.replace(/^\[|\]$/g, ""));
}

function hasToken(ctx: Context, token: string): boolean {
  const [, sent = ""] = BEARER.exec(ctx.get("authorization")) ?? [];
  return timingSafeEqual(digest(sent), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
