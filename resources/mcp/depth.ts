import { Problem } from "../http/problem.ts";

// Far more than any request needs. Code that walks a value recursively would overflow the stack at several thousand.
const DEPTH_MAX = 64;

/** Rejects a parsed JSON body with too many levels of arrays and objects. @throws Problem 400 */
export function assertDepth(body: unknown): void {
  if (isDeeperThan(DEPTH_MAX, body))
    throw new Problem(400, "invalid_json", `The JSON must be at most ${DEPTH_MAX} levels deep.`);
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((child) => isDeeperThan(levels - 1, child));
}
