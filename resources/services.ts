import { createCursors } from "./cursor.ts";
import { createLinks, type Links } from "./links/links.ts";
import type { Addresses } from "./metadata.ts";
import { createShowOrganization, type ShowOrganization } from "./organization.ts";
import type { LinkStore, OrganizationReader } from "./ports.ts";
import type { AllowedHosts } from "./webhooks/address.ts";
import type { WebhookStore } from "./webhooks/ports.ts";
import { createWebhooks, type Webhooks } from "./webhooks/webhooks.ts";

/** What the service does, made once: REST, MCP and the dashboard's pages are faces of the same. */
export type Cores = { links: Links; webhooks: Webhooks; showOrganization: ShowOrganization };

export type CoreOptions = {
  stores: { links: LinkStore; organizations: OrganizationReader; webhooks: WebhookStore };
  /** Receivers of webhooks that may be private, and take plain http. */
  webhookAllowHosts: AllowedHosts;
  addresses: Addresses;
  /** Signs cursors; the same in every process. */
  cursorSecret: string;
};

/** Makes the cores over their stores. */
export function createCores({ stores, webhookAllowHosts, addresses, cursorSecret }: CoreOptions): Cores {
  const hosts = [addresses.base, addresses.mcp, addresses.short].map((url) => new URL(url).host);
  const own = { ownHosts: new Set(hosts), ownWords: new Set(ownWords(addresses)) };
  const cursors = createCursors(cursorSecret);
  return {
    links: createLinks({ store: stores.links, cursors, ...own }),
    webhooks: createWebhooks({ store: stores.webhooks, cursors, allowed: webhookAllowHosts }),
    showOrganization: createShowOrganization(stores.organizations, stores.links, stores.webhooks),
  };
}

/** First words of addresses of ours that the settings decide: where short links live they cannot be slugs. */
function ownWords({ mcp, short }: Addresses): string[] {
  const { host, pathname } = new URL(mcp);
  return host === new URL(short).host ? pathname.split("/").slice(1, 2) : [];
}
