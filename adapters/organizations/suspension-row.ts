import type { OrganizationRow } from "../database/tables.ts";

/** When the operator suspended an organization, in epoch milliseconds, and why. */
export type Suspension = { at: number; reason: string | null };

/** The columns of a suspension. */
export type SuspensionColumns = Pick<OrganizationRow, "suspended_at" | "suspended_reason">;

/** Returns the suspension of an organization, or undefined if it is not suspended. */
export function suspensionOf({
  suspended_at: at,
  suspended_reason: reason,
}: SuspensionColumns): Suspension | undefined {
  return at === null ? undefined : { at, reason };
}
