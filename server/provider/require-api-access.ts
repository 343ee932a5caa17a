import { type Client, errors, type KoaContextWithOIDC } from "oidc-provider";
import { isPaid, type Plan } from "../../resources/plans.ts";
import { organizationOf } from "../clients/client-metadata.ts";

const ISSUING_ROUTES = new Set<string | undefined>([
  "token",
  "pushed_authorization_request",
  "device_authorization",
]);

type Organization = { plan: Plan; suspended?: boolean };

/** Returns whether an organization is on a paid plan and not suspended. A client without one needs no plan. */
export function hasApiAccess(organization: Organization | undefined): boolean {
  return !organization || (isPaid(organization.plan) && !organization.suspended);
}

export function isUsable(client: Client): boolean {
  return !client.disabled && hasApiAccess(organizationOf(client));
}

/** Throws UnauthorizedClient (RFC 6749 §5.2) if the organization, which `subject` names, is suspended or on Free. */
export function requireApiAccess(
  organization: Organization | undefined,
  subject = "the client's organization",
): void {
  if (organization?.suspended) throw new errors.UnauthorizedClient(`${subject} is suspended`);
  if (!hasApiAccess(organization))
    throw new errors.UnauthorizedClient(`${subject} must be on the Growth or Premium plan`);
}

/** Throws UnauthorizedClient if the client is disabled, or its organization may not use the API. */
export function requireUsable(client: Client): void {
  if (client.disabled) throw new errors.UnauthorizedClient("the client is disabled");
  requireApiAccess(organizationOf(client));
}

/** Throws InvalidClientAuth that says why: oidc-provider would describe every failure alike. */
export function refuseClient(reason: string): never {
  const error = new errors.InvalidClientAuth(reason);
  error.error_description = `client authentication failed: ${reason}`;
  throw error;
}

/** Call it after the client was authenticated: only the client itself learns of its state. It may still revoke. */
export function requireUsableToIssue(ctx: KoaContextWithOIDC | undefined, client: Client): void {
  if (ISSUING_ROUTES.has(ctx?.oidc.route)) requireUsable(client);
}
