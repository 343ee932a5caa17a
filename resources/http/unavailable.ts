/** The `code` of an error that means an outage: a dependency is unreachable or overloaded, and a retry may succeed. */
export const UNAVAILABLE = "ERR_UNAVAILABLE";

/** `Retry-After` of a 503, in seconds. */
export const RETRY_AFTER_S = 2;

/** Returns whether an error means an outage rather than a defect. */
export function isUnavailable(error: unknown): boolean {
  return (error as { code?: unknown } | null | undefined)?.code === UNAVAILABLE;
}
