import { Problem } from "../http/problem.ts";
import type { ActiveToken } from "./introspect.ts";

/** @throws Problem 403 `organization_suspended` if an organization that the token depends on is suspended */
export function requireActive({ suspended }: Pick<ActiveToken, "suspended">): void {
  if (!suspended) return;
  throw new Problem(
    403,
    "organization_suspended",
    "The operator of this service suspended the organization. Contact the operator.",
  );
}
