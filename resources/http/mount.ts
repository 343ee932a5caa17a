import type { Context, Middleware } from "koa";
import compose from "koa-compose";

/** Composes middleware that runs only for matching requests. */
export function mount(matches: (ctx: Context) => boolean, steps: Middleware[]): Middleware {
  const run = compose(steps);
  return function mounted(ctx, next) {
    return matches(ctx) ? run(ctx, next) : next();
  };
}

/** Matches requests whose path starts with one of these prefixes. */
export function isBelow(...prefixes: string[]): (ctx: Context) => boolean {
  return ({ path }) => prefixes.some((prefix) => path.startsWith(prefix));
}

/** Matches requests for exactly this URL: its host and path. */
export function isAt(url: string): (ctx: Context) => boolean {
  const { host, pathname } = new URL(url);
  return (ctx) => ctx.path === pathname && ctx.host.toLowerCase() === host;
}

/** Matches requests for a resource: its host, and its path or a path below it. */
export function isOfResource(resource: string): (ctx: Context) => boolean {
  const { host, pathname } = new URL(resource);
  return (ctx) =>
    (ctx.path === pathname || ctx.path.startsWith(`${pathname}/`)) && ctx.host.toLowerCase() === host;
}
