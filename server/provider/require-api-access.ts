import { type Client, errors, type KoaContextWithOIDC } from "oidc-provider";
import { isPaid, type Plan } from "../../resources/plans.ts";
import { organizationOf } from "../clients/client-metadata.ts";

const ISSUING_ROUTES = new Set<string | undefined>(["token", "pushed_authorization_request"]);

type Organization = { plan: Plan; suspended?: boolean };

/**
 * Returns whether an organization may use the API: it is on a paid plan and not suspended. A client without an organization
 * is the service's own, or is known by its metadata document; neither needs a plan.
 */
export function hasApiAccess(organization: Organization | undefined): boolean {
  return !organization || (isPaid(organization.plan) && !organization.suspended);
}

/** Returns whether a client is enabled and its organization may use the API. */
export function isUsable(client: Client): boolean {
  return !client.disabled && hasApiAccess(organizationOf(client));
}

/**
 * Rejects OAuth requests of, or on behalf of, an organization that is suspended or on the Free plan.
 * @param subject names the organization in `error_description`
 * @throws UnauthorizedClient (RFC 6749 §5.2)
 */
export function requireApiAccess(
  organization: Organization | undefined,
  subject = "the client's organization",
): void {
  if (organization?.suspended) throw new errors.UnauthorizedClient(`${subject} is suspended`);
  if (!hasApiAccess(organization)) {
    throw new errors.UnauthorizedClient(`${subject} must be on the Growth or Premium plan`);
  }
}

/** @throws UnauthorizedClient if the client is disabled, or its organization may not use the API */
export function requireUsable(client: Client): void {
  if (client.disabled) throw new errors.UnauthorizedClient("the client is disabled");
  requireApiAccess(organizationOf(client));
}

/**
 * Requires a usable client where tokens are issued; a client that is disabled, suspended or on the Free plan may still
 * revoke. To be called after the client was authenticated: only the client itself learns of its state.
 */
export function requireUsableToIssue(ctx: KoaContextWithOIDC | undefined, client: Client): void {
  if (ISSUING_ROUTES.has(ctx?.oidc.route)) requireUsable(client);
}
