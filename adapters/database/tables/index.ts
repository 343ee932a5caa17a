import { ACCOUNT_TABLES } from "./accounts.ts";
import type { KnexTable, Table } from "./columns.ts";
import { EVENT_TABLES } from "./events.ts";
import { LINK_TABLES, type LinkChangesRow } from "./links.ts";
import { OAUTH_TABLES } from "./oauth.ts";
import { ORGANIZATION_TABLES } from "./organizations.ts";
import { SERVICE_TABLES } from "./service.ts";
import { WEBHOOK_TABLES } from "./webhooks.ts";

const ALL = [
  ...SERVICE_TABLES,
  ...ACCOUNT_TABLES,
  ...ORGANIZATION_TABLES,
  ...OAUTH_TABLES,
  ...LINK_TABLES,
  // Deliveries are purged before their events.
  ...WEBHOOK_TABLES,
  ...EVENT_TABLES,
];

export const TABLES: readonly Table[] = ALL;

type Declared = (typeof ALL)[number];
type KnexTables = { [Of in Declared as Of["name"]]: KnexTable<Of> };

declare module "knex/types/tables.js" {
  // Types `knex("…")` and `trx("…")`. A table with an alias stays untyped: name its columns' types.
  interface Tables extends KnexTables {
    link_changes: LinkChangesRow;
  }
}
