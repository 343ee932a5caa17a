import type { Client, ClientMetadata, Provider } from "oidc-provider";
import type { ClientStore } from "../../adapters/clients.ts";
import { toMetadata } from "../../adapters/oidc/clients.ts";

// A parsed client takes a few kilobytes.
const MAX_CLIENTS = 10_000;

/**
 * Keeps parsed clients beside the text that they were parsed from. The text is read from the database in every request,
 * so that nothing is ever answered from memory; only its parsing is saved. The library does the same for a hundred
 * clients, keyed by a hash that has to be made each time, and parsing costs ten times as much as reading.
 */
export function cacheClients(provider: Provider, clients: ClientStore): void {
  const parsed = new Map<string, { document: string; client: Client }>();
  const findAny = provider.Client.find.bind(provider.Client);
  const construct = provider.Client as unknown as new (metadata: ClientMetadata) => Client;

  Object.assign(provider.Client, {
    async find(id: unknown): Promise<Client | undefined> {
      // Only clients of organizations are stored; the library knows its static ones and those with a document of their own.
      if (typeof id !== "string" || !id.startsWith("lgc_")) return findAny(id as string);
      const document = await clients.findDocument(id);
      if (document === undefined) return undefined;
      const known = parsed.get(id);
      if (known?.document === document) return known.client;
      const client = new construct(toMetadata(JSON.parse(document)));
      if (parsed.size >= MAX_CLIENTS) parsed.delete(parsed.keys().next().value as string);
      parsed.set(id, { document, client });
      return client;
    },
  });
}
