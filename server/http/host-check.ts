import type { Context, Middleware } from "koa";
import { EMBEDDED_STYLE, standalonePage } from "../ui/page.ts";

const POLICY = `default-src 'none'; style-src ${EMBEDDED_STYLE}; frame-ancestors 'none'; base-uri 'none'`;

/** Rejects requests for another host with 421 (RFC 9110 §15.5.20), so no response can be made to contain a foreign name. */
export function checkHost(hosts: ReadonlySet<string>, base: string): Middleware {
  return async function rejectForeignHost(ctx, next) {
    // Not `ctx.host`, which a proxy header can set.
    if (hosts.has(ctx.get("host").toLowerCase())) return next();
    respondMisdirected(ctx, base);
  };
}

/** Responds that a request belongs to the host of `BASE_URL`: with a page for browsers, with JSON for programs. */
export function respondMisdirected(ctx: Context, base: string): void {
  ctx.status = 421;
  if (ctx.accepts("json", "html") === "html") {
    ctx.type = "html";
    ctx.set("Content-Security-Policy", POLICY);
    ctx.body = standalonePage("Wrong address", `This server is ${base}.`, {
      href: base,
      text: `Go to ${new URL(base).host}`,
    });
    return;
  }
  ctx.body = { error: "misdirected_request", error_description: `this server is ${base}` };
}
