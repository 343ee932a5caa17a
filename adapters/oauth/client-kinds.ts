/**
 * The kinds of clients, told apart by their ids: `organization` clients are stored, `document` clients are identified by
 * the URL of their metadata document, and `service` clients are the service's own.
 */
export type ClientKind = "organization" | "document" | "service";

/** Returns the kind of the client with an id. */
export function clientKindOf(clientId: string): ClientKind {
  if (clientId.startsWith("lgc_")) return "organization";
  if (clientId.startsWith("https://")) return "document";
  return "service";
}
