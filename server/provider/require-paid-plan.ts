import { errors } from "oidc-provider";
import { isPaid, type Plan } from "../../resources/plans.ts";

type Organization = { plan: Plan };

/**
 * Returns whether an organization may use the API. A client without an organization is the service's own, or is known
 * by its metadata document; neither needs a plan.
 */
export function hasPaidPlan(organization: Organization | undefined): boolean {
  return !organization || isPaid(organization.plan);
}

/**
 * Rejects OAuth requests of, or on behalf of, an organization on the Free plan.
 * @param subject names the organization in `error_description`
 * @throws UnauthorizedClient (RFC 6749 §5.2) if the plan is not a paid one
 */
export function requirePaidPlan(
  organization: Organization | undefined,
  subject = "the client's organization",
): void {
  if (hasPaidPlan(organization)) return;
  throw new errors.UnauthorizedClient(`${subject} must be on the Growth or Premium plan`);
}
