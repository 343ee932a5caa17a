import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { hasCode } from "../errors.ts";
import { type LinkRow, links } from "../tables/links.ts";
import { createOnce } from "./migration.ts";

// In characters. MariaDB's indexes hold up to 3,072 bytes, and PostgreSQL's 2,704.
const LENGTH = 255;
// In the order of a list, so that it starts with the links that a page shows.
const URL_INDEX: Record<Engine, string> = {
  sqlite: "(organization_id, url, id) where deleted_at is null",
  postgres: `(organization_id, substr(url, 1, ${LENGTH}), id) where deleted_at is null`,
  mysql: `(organization_id, url(${LENGTH}), id)`,
};

export async function finishLinks(knex: Knex, engine: Engine): Promise<void> {
  await createOnce(knex, `create index links_url on links ${URL_INDEX[engine]}`);
  // Most links have no external ID. On SQLite and PostgreSQL, these need no entry in the index.
  await createOnce(
    knex,
    `create unique index links_external_id on links (organization_id, external_id)${engine === "mysql" ? "" : " where external_id is not null"}`,
  );
  await createOnce(
    knex,
    `create index links_domain on links (organization_id, domain, id)${engine === "mysql" ? "" : " where domain is not null"}`,
  );
  if (engine === "postgres") await createSearchIndex(knex);
  if (engine === "sqlite") await createLinkChanges(knex);
}

/** The extensions of PostgreSQL's index of links are trusted, so the owner may create them. */
export const CREATE_SEARCH_INDEX = [
  "create extension if not exists pg_trgm",
  "create extension if not exists btree_gin",
  "create index if not exists links_search on links using gin (organization_id, searched gin_trgm_ops, tags gin_trgm_ops)",
];

const isUnavailable = hasCode(
  "42501", // insufficient_privilege
  "42704", // undefined_object: the extension is in a schema that isn't in the search path
  "0A000", // feature_not_supported: the extension isn't installed
  "58P01", // undefined_file: the same before version 13
);

async function createSearchIndex(knex: Knex) {
  try {
    for (const statement of CREATE_SEARCH_INDEX) await knex.raw(statement);
  } catch (error) {
    // Searches then compare all links, as on the other databases.
    if (!isUnavailable(error)) throw error;
  }
}

const CHANGE = "begin update link_changes set version = version + 1; end";
// No redirect depends on these. A fallback is read when it is needed.
const WITHOUT_EFFECT: (keyof LinkRow)[] = [
  ...(["title", "tags", "searched", "external_id", "metadata", "fallback_url", "disabled_reason"] as const),
  ...(["clicks", "bot_clicks", "last_clicked_at", "version"] as const),
  ...(["created_by", "created_via", "created_at", "updated_at"] as const),
];
const REDIRECT_COLUMNS = Object.keys(links.columns)
  .filter((name) => !WITHOUT_EFFECT.includes(name as keyof LinkRow))
  .join(", ");
// What redirects read of a domain, but not when its record was checked.
const DOMAIN_COLUMNS = "id, organization_id, live_host, case_sensitive, root_redirect_url, not_found_url";

/** The version tells a process whether its cached links are current. Triggers see all processes. */
async function createLinkChanges(knex: Knex) {
  await createOnce(
    knex,
    "create table link_changes (id integer primary key check (id = 1), version integer not null)",
  );
  await knex.raw("insert into link_changes (id, version) values (1, 0) on conflict do nothing");
  for (const [name, change] of [
    ["link_changed", `update of ${REDIRECT_COLUMNS} on links`],
    ["link_removed", "delete on links"],
    ["organization_changed", "update of suspended_at, deleted_at, time_zone on organizations"],
    ["organization_removed", "delete on organizations"],
    ["domain_added", "insert on domains"],
    ["domain_changed", `update of ${DOMAIN_COLUMNS} on domains`],
    ["domain_removed", "delete on domains"],
  ])
    await createOnce(knex, `create trigger ${name} after ${change} ${CHANGE}`);
}
