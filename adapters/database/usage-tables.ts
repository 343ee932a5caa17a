/**
 * A part of an organization's usage and of its quota: their sums over all slots count. Concurrent changes use different
 * slots, so they don't wait for one another.
 */
export type OrganizationUsageRow = {
  organization_id: string;
  slot: number;
  links: number;
  link_bytes: number;
  max_links: number;
  max_link_bytes: number;
};
