import type { Middleware } from "koa";

/**
 * A frequent request, and the middleware that serves it. Koa serves the same request when it is sent in another form, so
 * its middleware has the same steps.
 */
export type FastPath = {
  method: "GET" | "POST";
  host: string;
  /** The path, without a query; or a pattern, such as `/:slug`, of the paths that `matches` accepts. */
  path: string;
  matches?(path: string): boolean;
  steps: Middleware[];
};
