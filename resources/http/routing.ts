import type { IncomingMessage } from "node:http";
import type { Router } from "@koa/router";
import type { Context, Middleware, Next } from "koa";
import compose from "koa-compose";
import { Problem } from "./problem.ts";

/** A step of every request, or steps of those whose path begins with one of these segments, in any letter case. */
export type Part = Middleware | { at: readonly string[]; steps: Middleware[] };

/** The segments that no other part names. */
export const OTHER_SEGMENTS = "*";

/** Composes the parts of a site, in this order: a request passes only the steps that concern its first segment. */
export function bySegment(parts: readonly Part[]): Middleware {
  const listOf = (segment: string) =>
    compose(
      parts.flatMap((part) =>
        typeof part === "function" ? part : part.at.includes(segment) ? part.steps : [],
      ),
    );
  const segments = parts.flatMap((part) => (typeof part === "function" ? [] : part.at));
  const lists = new Map(segments.map((segment) => [segment, listOf(segment)]));
  const others = lists.get(OTHER_SEGMENTS) ?? listOf(OTHER_SEGMENTS);
  return function runPart(ctx, next) {
    return (lists.get(firstSegmentOf(ctx.path)) ?? others)(ctx, next);
  };
}

export function firstSegmentOf(path: string): string {
  const end = path.indexOf("/", 1);
  return path.slice(1, end < 0 ? undefined : end).toLowerCase();
}

/** Composes middleware that runs only for matching requests. */
export function mount(matches: (ctx: Context) => boolean, steps: Middleware[]): Middleware {
  const run = compose(steps);
  return function mounted(ctx, next) {
    return matches(ctx) ? run(ctx, next) : next();
  };
}

export function isBelow(...prefixes: string[]): (ctx: Context) => boolean {
  return ({ path }) => prefixes.some((prefix) => path.startsWith(prefix));
}

/** Matches requests for exactly this URL: its host and path. */
export function isAt(url: string): (ctx: Context) => boolean {
  const { host, pathname } = new URL(url);
  return (ctx) => ctx.path === pathname && ctx.host === host;
}

/** Matches requests for a resource: its host, and its path or a path below it. */
export function isOfResource(resource: string): (ctx: Context) => boolean {
  const { host, pathname } = new URL(resource);
  return (ctx) => (ctx.path === pathname || ctx.path.startsWith(`${pathname}/`)) && ctx.host === host;
}

/** Expects a lower-case name. `headersDistinct` would copy all headers first. */
export function isSentTwice({ rawHeaders }: IncomingMessage, name: string): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index] as string;
    if (raw.length === name.length && raw.toLowerCase() === name) count++;
  }
  return count > 1;
}

/** Runs the next step for these methods, answers OPTIONS, and rejects others with `Allow` (RFC 9110 §15.5.6). */
export async function requireMethod(
  ctx: Pick<Context, "method" | "status" | "set">,
  methods: readonly string[],
  next: Next,
): Promise<void> {
  if (methods.includes(ctx.method)) return next();
  const allow = [...new Set([...methods, "OPTIONS"])].join(", ");
  if (ctx.method !== "OPTIONS")
    throw new Problem(405, "method_not_allowed", `Allowed methods: ${allow}.`, { headers: { Allow: allow } });
  ctx.status = 204;
  ctx.set("Allow", allow);
}

export const requireRead: Middleware = function requireReadMethod(ctx, next) {
  return requireMethod(ctx, ["GET", "HEAD"], next);
};

/** `acceptPatch` has the formats of a PATCH, which the response to OPTIONS lists (RFC 5789 §3.1). */
export function routesOf(router: Router, acceptPatch?: string): Middleware[] {
  return [router.routes() as unknown as Middleware, rejectOtherMethods(router, acceptPatch)];
}

function rejectOtherMethods(router: Router, acceptPatch?: string): Middleware {
  return async function checkMethod(ctx: Context, next) {
    const methods = router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods);
    if (acceptPatch && methods.includes("PATCH")) ctx.set("Accept-Patch", acceptPatch);
    return methods.length === 0 ? next() : requireMethod(ctx, methods, next);
  };
}
