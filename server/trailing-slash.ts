import type { Middleware } from "koa";
import { area, at } from "../resources/area.ts";

const PAGES = ["/dashboard", "/docs"];

/** Redirects `/dashboard/` and `/docs/` to the pages, as people type them. */
export function trailingSlash(base: string): Middleware[] {
  return PAGES.map((page) =>
    area(at(`${base}${page}/`), [
      function redirectToPage(ctx, next) {
        if (ctx.method !== "GET" && ctx.method !== "HEAD") return next();
        ctx.status = 308;
        ctx.redirect(page + ctx.search);
      },
    ]),
  );
}
