import { z } from "zod";
import type { ClientView } from "../../adapters/oauth/clients.ts";
import { MANAGERS } from "../../resources/access/scopes.ts";
import { Problem } from "../../resources/http/problem.ts";
import {
  type Address,
  type OrganizationOperation,
  type OrganizationRequest,
  onOrganization,
} from "./operation.ts";
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

/** Declares an operation on the OAuth client, by default of owners and admins. It refuses an organization without one. */
export function onClient<
  const At extends Address,
  Input extends z.ZodType = z.ZodObject,
  Output extends z.ZodType | undefined = undefined,
>({
  run,
  roles = MANAGERS,
  refuses = [],
  ...operation
}: OrganizationOperation<At, Input, Output, { client: ClientView }>) {
  return onOrganization<At, Input, Output>({
    ...(operation as unknown as OrganizationOperation<At, Input, Output>),
    roles,
    refuses: ["no_client", ...refuses],
    run: async (request) => run({ ...request, client: await clientOf(request) }),
  });
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
