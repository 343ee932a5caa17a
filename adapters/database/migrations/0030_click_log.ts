import { createOnce } from "./create-table.ts";
import type { Migration } from "./migration.ts";

/**
 * Creates the log of clicks on SQLite, where each click changed a page of its link. The rows of a batch are in the order
 * of their links, and batches in that of time, so they are appended. `click_fold` has at most one row: of the batches up
 * to `batch`, the clicks of the links up to `link_id` are already in the links.
 */
export const clickLog: Migration = {
  name: "0030_click_log",
  async up(knex, engine) {
    if (engine !== "sqlite") return;
    await createOnce(
      knex,
      `create table click_log (batch integer not null, link_id varchar(40) not null, clicks integer not null,
        clicked_at bigint not null, primary key (batch, link_id)) without rowid`,
    );
    await createOnce(
      knex,
      "create table click_fold (batch integer not null primary key, link_id varchar(40) not null)",
    );
  },
};
