import { createOnce } from "./create-table.ts";
import type { LaterMigration } from "./migration.ts";

const CHANGE = "begin update link_changes set version = version + 1; end";
const REDIRECT_COLUMNS =
  "id, organization_id, slug, url, redirect_type, archived, expires_at, max_clicks, disabled_at, deleted_at";

/**
 * On SQLite, gives links a version that changes with everything that decides where any of them redirects, so each process
 * can tell whether the links in its memory are current. Triggers count what other processes and earlier versions change.
 */
export const linkChanges: LaterMigration = {
  name: "0036_link_changes",
  oldestCompatible: "0033_schema_compatibility",
  async up(knex, engine) {
    if (engine !== "sqlite") return;
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
  },
};
