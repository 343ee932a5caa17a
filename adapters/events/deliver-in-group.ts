import type { BeginGroupState } from "../database/sqlite/group-state.ts";

const READ_ENABLED = "select 1 from webhooks where organization_id = ? and enabled = true limit 1";

/**
 * Leaves out the deliveries of organizations without an enabled webhook, which are most. The transaction of the group keeps
 * others from enabling one meanwhile. Only on SQLite.
 */
export const deliverInGroup: BeginGroupState = (read) => {
  const subscribers = new Map<string, boolean>();

  function hasWebhook(organizationId: string): boolean {
    const known = subscribers.get(organizationId) ?? read(READ_ENABLED, [organizationId]).length > 0;
    subscribers.set(organizationId, known);
    return known;
  }

  return {
    add: (row) => ({ row: hasWebhook(row.organization_id as string) ? row : undefined, undo() {} }),
    end: () => [],
  };
};
