import type { AdapterFactory, Client, ClientMetadata, Provider } from "oidc-provider";

// A parsed client takes a few kilobytes.
const MAX_CLIENTS = 10_000;

/**
 * Keeps parsed clients beside the text that they were parsed from. The text is read from the database in every request,
 * so that nothing is ever answered from memory; only its parsing is saved. The library does the same for a hundred
 * clients, keyed by a hash that has to be made each time, and parsing costs ten times as much as reading.
 */
export function cacheClients(provider: Provider, adapterOf: AdapterFactory): void {
  const adapter = adapterOf("Client");
  const parsed = new Map<string, { text: string; client: Client }>();
  const findAny = provider.Client.find.bind(provider.Client);
  const construct = provider.Client as unknown as new (metadata: ClientMetadata) => Client;

  Object.assign(provider.Client, {
    async find(id: unknown): Promise<Client | undefined> {
      // Only clients of organizations are stored; the library knows its static ones and those with a document.
      if (typeof id !== "string" || !id.startsWith("lgc_")) return findAny(id as string);
      const metadata = (await adapter.find(id)) as ClientMetadata | undefined;
      if (!metadata) return undefined;
      const text = JSON.stringify(metadata);
      const known = parsed.get(id);
      if (known?.text === text) return known.client;
      const client = new construct(metadata);
      if (parsed.size >= MAX_CLIENTS) parsed.delete(parsed.keys().next().value as string);
      parsed.set(id, { text, client });
      return client;
    },
  });
}
