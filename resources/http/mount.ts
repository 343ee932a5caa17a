import type { Context, Middleware } from "koa";
import compose from "koa-compose";

/** Middleware that only the requests of one area meet: everybody else passes by at the price of one question. */
export function area(has: (ctx: Context) => boolean, steps: Middleware[]): Middleware {
  const enter = compose(steps);
  return function visitArea(ctx, next) {
    return has(ctx) ? enter(ctx, next) : next();
  };
}

/** Requests whose path begins so. */
export function below(...prefixes: string[]): (ctx: Context) => boolean {
  return ({ path }) => prefixes.some((prefix) => path.startsWith(prefix));
}

/** Requests for exactly this address: its host and its path. */
export function at(address: string): (ctx: Context) => boolean {
  const { host, pathname } = new URL(address);
  return (ctx) => ctx.path === pathname && ctx.host.toLowerCase() === host;
}

/** Requests for a resource: its host, and its path or one below. */
export function of(resource: string): (ctx: Context) => boolean {
  const { host, pathname } = new URL(resource);
  return (ctx) =>
    (ctx.path === pathname || ctx.path.startsWith(`${pathname}/`)) && ctx.host.toLowerCase() === host;
}
