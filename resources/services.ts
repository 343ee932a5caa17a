import type { PublicUrls } from "./access/resource-metadata.ts";
import { createDomainService, type ResolveTxt } from "./domains/service.ts";
import type { DomainStore } from "./domains/types.ts";
import { createCursors } from "./http/pagination.ts";
import { createImportLinks } from "./links/import/index.ts";
import { reservedNamesOf } from "./links/rules.ts";
import { createLinkService } from "./links/service.ts";
import type { LinkPasswords, LinkStore } from "./links/types.ts";
import {
  createShowOrganization,
  type OrganizationReader,
  type SettingsReader,
} from "./organization/routes.ts";
import type { AllowedHosts } from "./outbound/ssrf-guard.ts";
import { createListEvents } from "./webhooks/event-list.ts";
import { type CountTest, createWebhookService } from "./webhooks/service.ts";
import type { EventList, WebhookStore } from "./webhooks/types.ts";
import { createWorkQueue } from "./work-queue.ts";

// Other requests wait for the transaction of a batch, on SQLite.
const IMPORT_BATCH = 150;

export type Services = ReturnType<typeof createServices>;

type ServiceOptions = {
  stores: {
    links: LinkStore;
    domains: DomainStore;
    organizations: OrganizationReader;
    organizationSettings: SettingsReader;
    webhooks: WebhookStore;
    events: EventList;
  };
  linkPasswords: LinkPasswords;
  /** Reads the DNS records that verify domains. */
  resolveTxt: ResolveTxt;
  /** Whether hosts of this machine may be domains. */
  allowsLocalhost: boolean;
  /** Hosts that webhooks may use despite being private, and over plain http. */
  webhookAllowHosts: AllowedHosts;
  /** If absent, test events of webhooks aren't limited. */
  countTest?: CountTest;
  urls: PublicUrls;
  /** Signs cursors; shared by all processes. */
  cursorSecret: string;
};

export function createServices({ stores, webhookAllowHosts, urls, ...options }: ServiceOptions) {
  const { links, webhooks, events } = stores;
  const own = reservedNamesOf(urls);
  const cursors = createCursors(options.cursorSecret);
  const passwords = options.linkPasswords;
  const linkService = createLinkService({ store: links, cursors, passwords, ...own });
  return {
    links: linkService,
    domains: createDomainService({
      store: stores.domains,
      links: linkService,
      resolveTxt: options.resolveTxt,
      allowsLocalhost: options.allowsLocalhost,
      ...own,
    }),
    importLinks: createImportLinks(stores, own, createWorkQueue(), IMPORT_BATCH),
    webhooks: createWebhookService({
      store: webhooks,
      cursors,
      allowed: webhookAllowHosts,
      countTest: options.countTest,
    }),
    listEvents: createListEvents({ events, cursors, shortUrl: urls.short }),
    showOrganization: createShowOrganization(stores),
  };
}
