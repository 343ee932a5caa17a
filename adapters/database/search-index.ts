import type { Knex } from "knex";

/** The statements that create PostgreSQL's index of links. The extensions are trusted, so the owner may create them. */
export const CREATE_SEARCH_INDEX = [
  "create extension if not exists pg_trgm",
  "create extension if not exists btree_gin",
  "create index if not exists links_search on links using gin (organization_id, searched gin_trgm_ops, tags gin_trgm_ops)",
];

/** Returns whether PostgreSQL has the index, and has finished building it. */
export async function hasSearchIndex(knex: Knex): Promise<boolean> {
  const { rows } = await knex.raw(
    "select 1 from pg_index where indexrelid = to_regclass('links_search') and indisvalid",
  );
  return rows.length > 0;
}
