import type { RateLimiterAbstract } from "rate-limiter-flexible";

/** A counter per key, with a limit that it does not enforce. */
export type Counter = Pick<RateLimiterAbstract, "points" | "penalty" | "reward" | "get" | "delete">;
