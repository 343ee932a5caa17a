import type { Client, ClientMetadata, Provider } from "oidc-provider";
import type { ClientStore } from "../../adapters/clients.ts";
import { toMetadata } from "../../adapters/oidc/clients.ts";

// One takes a few kilobytes.
const MAX_CLIENTS = 10_000;

/**
 * Keeps the library's client objects, each with the version of the client that it was made from. The version is read
 * from the database in every request, so a change takes effect immediately; only the construction is saved, which costs
 * ten times as much as the read. The library's own cache holds a hundred clients, by a hash computed at each request.
 */
export function cacheClients(provider: Provider, clients: ClientStore): void {
  const constructed = new Map<string, { version: string; client: Client }>();
  const findAny = provider.Client.find.bind(provider.Client);
  const construct = provider.Client as unknown as new (metadata: ClientMetadata) => Client;

  Object.assign(provider.Client, {
    async find(id: unknown): Promise<Client | undefined> {
      // Only clients of organizations are stored; the library knows its static ones and those with a document of their own.
      if (typeof id !== "string" || !id.startsWith("lgc_")) return findAny(id as string);
      const stored = await clients.find(id);
      if (!stored) return undefined;
      const { version } = stored;
      const known = constructed.get(id);
      if (known?.version === version) return known.client;
      const client = new construct(toMetadata(stored));
      if (constructed.size >= MAX_CLIENTS) constructed.delete(constructed.keys().next().value as string);
      constructed.set(id, { version, client });
      return client;
    },
  });
}
