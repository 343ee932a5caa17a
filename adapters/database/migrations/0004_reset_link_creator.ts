import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID

/** Adds the creator of a reset link and the organization that the creator acted for. */
export const resetLinkCreator: Migration = {
  name: "0004_reset_link_creator",
  async up(knex, engine) {
    await revokeOpenLinks(knex);
    await extendLinks(knex, engine);
  },
};

/** Revokes unused links, because their creator is unknown. They would expire within the hour anyway. */
async function revokeOpenLinks(knex: Knex) {
  await knex("one_time_links").whereNull("used_at").update({ used_at: Date.now() });
}

async function extendLinks(knex: Knex, engine: Engine) {
  await knex.schema.alterTable("one_time_links", (table) => {
    // A user id or `operator`. A link without a creator can't be used.
    keyColumn(table, "created_by", ID, engine).index();
    // The organization that an owner acted for. Null for the operator.
    keyColumn(table, "organization_id", ID, engine);
    table.index("user_id");
  });
}
