import type { Context } from "koa";
import type { MemberRefusal } from "../../../adapters/organizations/members.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { membershipOf, signedInUserOf } from "../access.ts";

/** Returns the problem of a change to owners by a user who isn't an owner. */
export function ownersOnly(): Problem {
  return new Problem(403, "role_required", "Only owners can manage owners.");
}

/** Why the last owner can't leave, be removed or get another role. */
export const LAST_OWNER = "An organization must have an owner. Make another member an owner first.";

/** Returns the member in the path, and who makes the change. */
export function targetOf(ctx: Context) {
  const organizationId = membershipOf(ctx).id;
  return { organizationId, userId: ctx.params.user_id as string, actor: signedInUserOf(ctx).actor };
}

/** @throws Problem */
export function assertChanged(refusal: MemberRefusal | undefined): void {
  if (refusal === "missing") throw notFound("member");
  if (refusal === "forbidden") throw ownersOnly();
  if (refusal === "last_owner") throw new Problem(409, "last_owner", LAST_OWNER);
}
