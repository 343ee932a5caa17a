import type { PublicUrls } from "./access/resource-metadata.ts";
import { createCursors } from "./http/pagination.ts";
import { createImportLinks, type ImportLinks } from "./links/import/index.ts";
import { reservedNamesOf } from "./links/rules.ts";
import { createLinkService, type LinkService } from "./links/service.ts";
import type { LinkStore } from "./links/types.ts";
import {
  createShowOrganization,
  type OrganizationReader,
  type SettingsReader,
  type ShowOrganization,
} from "./organization/routes.ts";
import type { AllowedHosts } from "./outbound/ssrf-guard.ts";
import { createTurns } from "./turns.ts";
import { createListEvents, type ListEvents } from "./webhooks/event-list.ts";
import { type CountTest, createWebhookService, type WebhookService } from "./webhooks/service.ts";
import type { EventList, WebhookStore } from "./webhooks/types.ts";

// Other requests wait for the transaction of a batch, on SQLite.
const IMPORT_BATCH = 150;

export type Services = {
  links: LinkService;
  importLinks: ImportLinks;
  webhooks: WebhookService;
  listEvents: ListEvents;
  showOrganization: ShowOrganization;
};

export type ServiceOptions = {
  stores: {
    links: LinkStore;
    organizations: OrganizationReader;
    organizationSettings: SettingsReader;
    webhooks: WebhookStore;
    events: EventList;
  };
  /** Hosts that webhooks may use despite being private, and over plain http. */
  webhookAllowHosts: AllowedHosts;
  /** If absent, test events of webhooks aren't limited. */
  countTest?: CountTest;
  urls: PublicUrls;
  /** Signs cursors; shared by all processes. */
  cursorSecret: string;
};

export function createServices({
  stores,
  webhookAllowHosts,
  countTest,
  urls,
  cursorSecret,
}: ServiceOptions): Services {
  const own = reservedNamesOf(urls);
  const cursors = createCursors(cursorSecret);
  return {
    links: createLinkService({ store: stores.links, cursors, ...own }),
    importLinks: createImportLinks(stores.links, own, createTurns(), IMPORT_BATCH),
    webhooks: createWebhookService({
      store: stores.webhooks,
      cursors,
      allowed: webhookAllowHosts,
      countTest,
    }),
    listEvents: createListEvents({ events: stores.events, cursors, shortUrl: urls.short }),
    showOrganization: createShowOrganization(
      stores.organizations,
      stores.organizationSettings,
      stores.links,
      stores.webhooks,
    ),
  };
}
