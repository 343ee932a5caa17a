import type { RateLimiterAbstract } from "rate-limiter-flexible";

/** A counter per key, with a limit that it does not enforce. */
export type SilentCounter = Pick<RateLimiterAbstract, "points" | "penalty" | "reward" | "get" | "delete">;

/** A counter that reports refusals. */
export type Counter = SilentCounter & {
  /** Called for each request that is refused because of the limit. */
  refused(): void;
};
