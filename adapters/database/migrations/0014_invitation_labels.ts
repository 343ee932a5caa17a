import type { Migration } from "./migration.ts";

export const invitationLabels: Migration = {
  name: "0014_invitation_labels",
  changes: "Adds labels to invitations, which say whom they are for.",
  rewrites: () => [],
  oldestCompatible: "0007_webhooks",
  async up(knex) {
    if (await knex.schema.hasColumn("invitations", "label")) return;
    await knex.schema.alterTable("invitations", (table) => {
      table.string("label", 100);
    });
  },
};
