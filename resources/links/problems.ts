import { Problem } from "../http/problem.ts";
import type { Link, LinkConflict } from "./types.ts";

const RETRY_AFTER_S = 1;

/** Creates a 412 for a link whose version isn't the one that the caller expects. */
export function preconditionFailed(): Problem {
  return new Problem(
    412,
    "precondition_failed",
    "The link has changed since you last read it. Read it again and retry.",
  );
}

/** Creates a 503 for an upsert that lost every race. The caller did nothing wrong, so a retry may well succeed. */
export function upsertContention(): Problem {
  const detail = "Other requests keep creating and deleting this link. Try again.";
  return new Problem(503, "temporarily_unavailable", detail, {
    headers: { "Retry-After": String(RETRY_AFTER_S) },
  });
}

/** Creates a 410 for visitors of a link; `detail` says no more than they need to know. */
export function linkGone(detail: string): Problem {
  return new Problem(410, "link_gone", detail);
}

/** Returns the result of a change. @throws Problem 409 `link_disabled` */
export function assertEnabled<T>(result: T | "disabled"): T {
  if (result !== "disabled") return result;
  const detail = "The operator of this service disabled the link, so it can't be changed. You can delete it.";
  throw new Problem(409, "link_disabled", detail);
}

/** Returns the link. @throws Problem 409 `slug_taken` or `external_id_taken` */
export function assertNoConflict(result: Link | LinkConflict): Link {
  if (!("taken" in result)) return result;
  const field = result.taken;
  const message = field === "slug" ? "is already taken" : "is already used by another link";
  throw new Problem(409, `${field}_taken`, `${field} ${message}.`, { errors: [{ field, message }] });
}

/** Returns the result of a conditional write. @throws Problem 412 `precondition_failed` */
export function assertNotStale<T>(result: T | "stale"): T {
  if (result === "stale") throw preconditionFailed();
  return result;
}
