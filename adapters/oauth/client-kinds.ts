/**
 * The kinds of clients, told apart by their ids: `organization` clients are stored, `document` clients are identified by
 * the URL of their metadata document, `registered` clients by an id that contains their registration, and `service`
 * clients are the service's own.
 */
export type ClientKind = "organization" | "document" | "registered" | "service";

/** What the id of a registered client starts with. */
export const REGISTERED_PREFIX = "lgd_";

/** Returns the kind of the client with an id. */
export function clientKindOf(clientId: string): ClientKind {
  if (clientId.startsWith("lgc_")) return "organization";
  if (clientId.startsWith("https://")) return "document";
  if (clientId.startsWith(REGISTERED_PREFIX)) return "registered";
  return "service";
}
