import type { Storage } from "../../../adapters/index.ts";
import { Problem } from "../../../resources/http/problem.ts";

/**
 * Returns the client of an organization.
 * @throws Problem if the organization has never been on a paid plan
 */
export async function clientOf(clients: Storage["clients"], organizationId: string) {
  const client = await clients.findByOrganization(organizationId);
  if (client) return client;
  throw new Problem(404, "no_client", "Upgrade to Growth or Premium to get an OAuth client.");
}
