import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { hasCode } from "../errors.ts";
import { CLIENT_ID, createOnce, createTable, HOST, ID, type Migration } from "./migration.ts";

export const links: Migration = {
  name: "0005_links",
  changes: "Creates the tables of links and their clicks.",
  rewrites: () => [],
  oldestCompatible: null,
  async up(knex, engine) {
    await createLinks(knex, engine);
    await createTable(knex, engine, "organization_usage", (table, key) => {
      key("organization_id", ID).primary();
      // Null, which these columns refuse, is a count above the quota.
      table.bigInteger("links").notNullable();
      table.bigInteger("link_bytes").notNullable();
    });

    if (engine === "postgres") await createSearchIndex(knex);
    await createTable(knex, engine, "click_stats", (table, key) => {
      key("link_id", ID).notNullable();
      table.integer("day").notNullable(); // days since January 1, 1970, UTC
      key("referrer", HOST).notNullable(); // a host name, or empty
      key("country", 2).notNullable(); // ISO 3166-1 alpha-2, or empty
      table.boolean("bot").notNullable();
      key("organization_id", ID).notNullable();
      table.bigInteger("clicks").notNullable();
      table.primary(["link_id", "day", "referrer", "country", "bot"]);
      table.index(["organization_id", "day"]);
    });

    await createClickTotals(knex, engine);
    if (engine === "sqlite") await createLinkChanges(knex);
  },
};

async function createLinks(knex: Knex, engine: Engine) {
  await createTable(knex, engine, "links", (table, key) => {
    key("id", ID).primary();
    key("organization_id", ID).notNullable();
    key("slug", 64).notNullable().unique();
    table.text("url").notNullable();
    table.string("title", 255);
    const tags = table.text("tags").notNullable();
    const searched = table.text("searched").notNullable();
    if (engine === "mysql") for (const column of [tags, searched]) column.collate("utf8mb4_bin"); // byte by byte
    key("external_id", 255);
    // MySQL's TEXT holds 64 KB, and the allowed metadata may be longer. The other engines have no limit.
    table.text("metadata", "mediumtext").notNullable();
    table.boolean("archived").notNullable().defaultTo(false);
    table.bigInteger("expires_at");
    table.integer("max_clicks");
    table.integer("redirect_type").notNullable();
    table.bigInteger("clicks").notNullable().defaultTo(0);
    table.bigInteger("last_clicked_at");
    // Incremented by each change except clicks. Used as the entity tag.
    table.integer("version").notNullable().defaultTo(1);
    key("created_by", CLIENT_ID).notNullable();
    key("created_via", CLIENT_ID);
    table.bigInteger("created_at").notNullable();
    table.bigInteger("updated_at").notNullable();
    // A deleted link keeps its row so its slug is never reused.
    table.bigInteger("deleted_at");
    table.bigInteger("disabled_at");
    table.string("disabled_reason", 255);
    table.index(["organization_id", "id"]);
    if (engine !== "sqlite") table.unique(["organization_id", "external_id"]);
  });
  if (engine !== "sqlite") return;
  // Most links have no external ID, and need no entry in this index.
  await createOnce(
    knex,
    "create unique index links_external_id on links (organization_id, external_id) where external_id is not null",
  );
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

const DIMENSION = 8;

/** Creates totals, so that an organization's analytics don't read the statistics of every link. */
async function createClickTotals(knex: Knex, engine: Engine) {
  if (engine === "sqlite") {
    // Without an index beside the rows, a range of days is read in one place.
    await createOnce(
      knex,
      `create table click_totals (organization_id varchar(${ID}) not null, dimension varchar(${DIMENSION}) not null,
        day integer not null, name varchar(${HOST}) not null, clicks bigint not null,
        primary key (organization_id, dimension, day, name)) without rowid`,
    );
    return;
  }
  await createTable(knex, engine, "click_totals", (table, key) => {
    key("organization_id", ID).notNullable();
    key("dimension", DIMENSION).notNullable();
    table.integer("day").notNullable();
    key("name", HOST).notNullable(); // a referrer, a country, or empty
    table.bigInteger("clicks").notNullable();
    table.primary(["organization_id", "dimension", "day", "name"]);
  });
}

const CHANGE = "begin update link_changes set version = version + 1; end";
const REDIRECT_COLUMNS =
  "id, organization_id, slug, url, redirect_type, archived, expires_at, max_clicks, disabled_at, deleted_at";

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
    ["organization_changed", "update of suspended_at, deleted_at on organizations"],
    ["organization_removed", "delete on organizations"],
  ])
    await createOnce(knex, `create trigger ${name} after ${change} ${CHANGE}`);
}
