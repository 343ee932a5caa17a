import { z } from "zod";
import { notFound } from "../../resources/http/problem.ts";
import type { OrganizationRequest } from "./operation.ts";
import { flag } from "./schemas.ts";

/** Throws Problem 404. */
export async function changeSettings(
  {
    storage,
    organization,
    actor,
  }: Pick<OrganizationRequest, "storage" | "actor"> & { organization: { id: string } },
  changes: Parameters<OrganizationRequest["storage"]["organizationSettings"]["change"]>[1],
): Promise<void> {
  if (!(await storage.organizationSettings.change(organization.id, changes, actor)))
    throw notFound("organization");
}

/** What operations share with which an owner turns something on or off. @param done the sentence for on, then for off */
export function onOff<const Field extends string>(field: Field, done: Record<string, string>) {
  const [on, off] = Object.keys(done);
  return {
    roles: ["owner"] as const,
    needsRecentSignIn: true,
    input: z.strictObject({ [field]: flag } as Record<Field, typeof flag>),
    done,
    outcome: (input: Record<Field, boolean>) => (input[field] ? on : off),
  };
}
