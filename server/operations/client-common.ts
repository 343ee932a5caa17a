import { z } from "zod";
import { Problem } from "../../resources/http/problem.ts";
import type { OrganizationRequest } from "./operation.ts";
import { refusal } from "./problem-codes.ts";
import { flag } from "./schemas.ts";

export const CLIENT = "/dashboard/organizations/{id}/client";

export const clientId = z.string().describe("The ID of the client, which starts with `lgc_`.");
export const compromised = flag
  .default(false)
  .describe("Whether it leaked: then all tokens and authorizations of the client end now.");

/** Throws Problem if the organization has never been on a paid plan. */
export async function clientOf({
  storage,
  organization,
}: {
  storage: Pick<OrganizationRequest["storage"], "clients">;
  organization: { id: string };
}) {
  const client = await storage.clients.findByOrganization(organization.id);
  if (client) return client;
  throw refusal("no_client");
}

/** Throws Problem `fapi_conflict`. */
export function refuseConflict(error: unknown): never {
  // By its name, because its class is in a module that loads the database.
  const isConflict = error instanceof Error && error.name === "FapiConflict";
  throw isConflict ? new Problem(409, "fapi_conflict", error.message) : error;
}

/** Returns what is asked before an input that ends every token. */
export function revokesAll(input: Record<string, unknown>, organization: string): string | undefined {
  return input.compromised ? `Revoke every token of the client of ${organization}?` : undefined;
}
