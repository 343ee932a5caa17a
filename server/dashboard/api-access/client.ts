import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import { FapiConflict } from "../../../adapters/oauth/clients.ts";
import { Problem } from "../../../resources/http/problem.ts";
import { membershipOf } from "../access.ts";
import { ORGANIZATION } from "../route.ts";

export const CLIENT = `${ORGANIZATION}/client`;

/** Throws Problem if the organization has never been on a paid plan. */
export async function clientOf(ctx: Context, clients: Storage["clients"]) {
  const client = await clients.findByOrganization(membershipOf(ctx).id);
  if (client) return client;
  throw new Problem(404, "no_client", "Upgrade to Growth or Premium to get an OAuth client.");
}

/** Throws Problem `fapi_conflict`. */
export function refuseConflict(error: unknown): never {
  throw error instanceof FapiConflict ? new Problem(409, "fapi_conflict", error.message) : error;
}
