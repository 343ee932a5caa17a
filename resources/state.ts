import type { AuthenticatedCaller } from "./access/bearer.ts";

declare module "koa" {
  interface DefaultState {
    /** Identifies the request in the log; also sent as `X-Request-Id`. */
    requestId: string;
    /** The caller, behind the bearer check. */
    caller: AuthenticatedCaller;
    /** The query with its numbers and booleans converted, behind `readQuery`. */
    query: Record<string, unknown>;
  }
}
