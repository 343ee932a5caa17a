import type { Middleware } from "koa";
import { isSentTwice } from "../../resources/http/headers.ts";
import { Problem } from "../../resources/http/problem.ts";
import { isForOtherHost } from "./request-target.ts";

/** Rejects requests that proxies may understand in another way. */
export const checkFraming: Middleware = function rejectAmbiguous({ req, res }, next) {
  // RFC 9112 §3.2
  if (isSentTwice(req, "host")) throw new Problem(400, "invalid_request", "Send one Host header.");
  // RFC 9112 §6.1. Node's parser accepts every coding before `chunked`, and doesn't decode it.
  const coding = req.headers["transfer-encoding"] ?? "chunked";
  if (coding.toLowerCase() === "chunked") return next();
  res.setHeader("Connection", "close");
  throw new Problem(501, "unsupported_transfer_encoding", "The only supported Transfer-Encoding is chunked.");
};

/** Rejects requests for another host with 421 (RFC 9110 §15.5.20), so no response can be made to contain a foreign name. */
export function checkHost(hosts: ReadonlySet<string>, base: string): Middleware {
  return function rejectForeignHost(ctx, next) {
    // Not `ctx.host`, which a proxy header can set.
    if (hosts.has(ctx.get("host").toLowerCase()) && !isForOtherHost(ctx.req)) return next();
    throw misdirected(base);
  };
}

/** Returns the error of a request that belongs to the host of `BASE_URL`. */
export function misdirected(base: string): Problem {
  return new Problem(421, "misdirected_request", `This server is ${base}.`);
}
