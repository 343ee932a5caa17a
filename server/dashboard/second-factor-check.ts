import type { Context } from "koa";
import type { SecondFactorRequirementStore } from "../../adapters/organizations/second-factor-requirement.ts";
import type { Membership } from "../../adapters/organizations/store.ts";
import { Problem } from "../../resources/http/problem.ts";
import { requireRecentSignIn } from "../auth/authenticate.ts";
import { prefersHtml } from "../http/request-body.ts";
import type { SignedInUser } from "../http/state.ts";

/** The page that explains why a second factor is needed. */
export const SECOND_FACTOR_SETUP = "/dashboard/account/second-factor";

/**
 * Checks that an owner or admin has proved a second factor if the organization requires one. Returns false after
 * redirecting a browser to the page that sets one up.
 * @throws Problem 403
 */
export async function checkSecondFactor(
  ctx: Context,
  requirement: Pick<SecondFactorRequirementStore, "isRequired">,
  { secondFactor }: SignedInUser,
  { id, role }: Membership,
): Promise<boolean> {
  if (secondFactor === "proved" || role === "member" || !(await requirement.isRequired(id))) return true;
  // The session is older than the second factor: its owner has to sign in again.
  if (secondFactor === "not_proved") requireRecentSignIn(ctx);
  if (!prefersHtml(ctx)) {
    throw new Problem(
      403,
      "second_factor_setup_required",
      "This organization requires owners and admins to use a second factor. Set one up, then sign in again.",
    );
  }
  ctx.status = 303;
  ctx.redirect(`${SECOND_FACTOR_SETUP}?${new URLSearchParams({ organization: id })}`);
  return false;
}
