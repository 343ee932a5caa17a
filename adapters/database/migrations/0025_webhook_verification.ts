import { keyColumn } from "../engine.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID

/** Adds the verification of endpoints. Webhooks of earlier versions count as verified. */
export const webhookVerification: Migration = {
  name: "0025_webhook_verification",
  async up(knex, engine) {
    // MariaDB commits each schema change, so a process that died here may already have made it.
    if (await knex.schema.hasColumn("webhooks", "verification_expires_at")) return;
    await knex.schema.alterTable("webhooks", (table) => {
      // The test event that the endpoint has to accept; null if none is being sent.
      keyColumn(table, "verification_event_id", ID, engine);
      // Until when other events wait for that. Null means verified, so a process of an earlier version, which doesn't
      // know the column, creates verified webhooks.
      table.bigInteger("verification_expires_at");
    });
  },
};
