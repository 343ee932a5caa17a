import { createTable, HASH, ID, type Migration } from "./migration.ts";

export const clientProfiles: Migration = {
  name: "0015_client_profiles",
  changes: "Adds profiles of clients: a name, a homepage and a logo.",
  rewrites: () => [],
  oldestCompatible: "0007_webhooks",
  async up(knex, engine) {
    await createTable(knex, engine, "client_profiles", (table, key) => {
      key("client_id", ID).primary().references("clients.id").onDelete("CASCADE");
      table.string("name", 100);
      table.text("homepage");
      // A PNG of up to 256 × 256 pixels. On MySQL, a blob ends at 64 KB.
      if (engine === "mysql") table.specificType("logo", "mediumblob");
      else table.binary("logo");
      key("logo_hash", HASH).index();
    });
  },
};
