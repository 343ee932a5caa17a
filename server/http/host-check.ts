import type { Middleware } from "koa";

/** Refuses requests for another host (RFC 9110 §15.5.20): no answer of ours may be made to carry a foreign name. */
export function checkHost(hosts: ReadonlySet<string>, base: string): Middleware {
  return function refuseForeignHost(ctx, next) {
    // Not `ctx.host`: a proxy header has no say in this.
    if (hosts.has(ctx.get("host").toLowerCase())) return next();
    ctx.status = 421;
    ctx.body = { error: "misdirected_request", error_description: `this server is ${base}` };
  };
}
