/** Returns the path of the page on which an owner or admin of an organization approves an app for its members. */
export function approvalPath(organizationId: string, clientId: string): string {
  return `/dashboard/organizations/${organizationId}/apps/approve?${new URLSearchParams({ client_id: clientId })}`;
}
