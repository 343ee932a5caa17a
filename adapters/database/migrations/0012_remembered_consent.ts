import { keyColumn } from "../engine.ts";
import type { Migration } from "./migration.ts";

const HASH = 43; // a grant id

/** Adds to each grant which consent it follows from, and when the user gave it. */
export const rememberedConsent: Migration = {
  name: "0012_remembered_consent",
  async up(knex, engine) {
    // PostgreSQL and MariaDB commit each schema change, so a process that died here may already have added the columns.
    if (await knex.schema.hasColumn("grants", "consent_id")) return;
    await knex.schema.alterTable("grants", (table) => {
      // The id of the grant that the consent page created. Null without such a page, and in grants of earlier versions.
      keyColumn(table, "consent_id", HASH, engine);
      table.bigInteger("consented_at");
    });
  },
};
