import type { GrantRow } from "../database/oauth-tables.ts";
import type { DomainEvent } from "../events/outbox.ts";

/** The columns of a grant that its events describe. */
export type Grant = Pick<GrantRow, "id" | "client_id" | "user_id" | "organization_id" | "payload">;

/**
 * Returns the domain event of a grant, or none for a grant without an organization.
 * @param reason why the service itself revoked the grant
 */
export function toDomainEvent(
  type: "authorization.granted" | "authorization.revoked",
  { id, client_id, user_id, organization_id, payload }: Grant,
  reason?: "replay_detected",
): DomainEvent[] {
  if (!organization_id) return [];
  const data = {
    grant_id: id,
    client_id,
    user_id,
    scopes: scopesOf(payload),
    ...(reason && { reason }),
  };
  return [{ organizationId: organization_id, type, subject: id, data }];
}

/** Returns the granted scopes of all resources, sorted. */
export function scopesOf(payload: string): string[] {
  const { openid, resources = {} } = JSON.parse(payload) as {
    openid?: { scope?: string };
    resources?: Record<string, string>;
  };
  const scopes = [openid?.scope ?? "", ...Object.values(resources)].flatMap((scope) => scope.split(" "));
  return [...new Set(scopes.filter(Boolean))].sort();
}
