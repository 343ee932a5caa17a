import type { Migration } from "./migration.ts";

/** Adds for whom an invitation is, in the words of its creator. */
export const invitationLabels: Migration = {
  name: "0014_invitation_labels",
  oldestCompatible: "0007_webhooks",
  async up(knex) {
    if (await knex.schema.hasColumn("invitations", "label")) return;
    await knex.schema.alterTable("invitations", (table) => {
      table.string("label", 100);
    });
  },
};
