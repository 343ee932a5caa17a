import { CLIENT_ID, createTable, HASH, ID, type Migration } from "./migration.ts";

export const organizations: Migration = {
  name: "0003_organizations",
  changes: "Creates the tables of organizations: members, invitations, approved apps and trust rules.",
  rewrites: () => [],
  oldestCompatible: null,
  async up(knex, engine) {
    await createTable(knex, engine, "organizations", (table, key) => {
      key("id", ID).primary();
      table.string("name", 100).notNullable();
      table.string("plan", 16).notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("updated_at").notNullable();
      // A deleted organization keeps its row so the slugs of its links are never reused.
      table.bigInteger("deleted_at").index();
      table.bigInteger("suspended_at");
      table.string("suspended_reason", 255);
      table.string("document_clients", 16).notNullable().defaultTo("known");
      table.string("member_apps", 16).notNullable().defaultTo("any");
      table.boolean("require_dpop").notNullable().defaultTo(false);
      table.boolean("enterprise_authorization").notNullable().defaultTo(false);
      table.boolean("require_second_factor").notNullable().defaultTo(false);
    });

    await createTable(knex, engine, "memberships", (table, key) => {
      key("user_id", ID).notNullable().references("users.id").onDelete("CASCADE");
      key("organization_id", ID).notNullable().references("organizations.id").onDelete("CASCADE");
      table.string("role", 16).notNullable();
      table.bigInteger("created_at").notNullable();
      table.primary(["user_id", "organization_id"]);
      table.index("organization_id");
    });

    await createTable(knex, engine, "invitations", (table, key) => {
      key("id", ID).primary();
      key("id_hash", HASH).notNullable().unique();
      key("organization_id", ID).notNullable().index();
      table.string("role", 16).notNullable();
      key("created_by", ID).notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.bigInteger("used_at");
      table.string("email", 254); // where it was sent
    });

    await createTable(knex, engine, "approved_apps", (table, key) => {
      key("id", ID).primary();
      key("organization_id", ID).notNullable();
      key("client_id", CLIENT_ID).notNullable();
      key("approved_by", ID).notNullable(); // a user id or `operator`
      table.bigInteger("created_at").notNullable();
      table.unique(["organization_id", "client_id"]);
    });

    await createTable(knex, engine, "trust_rules", (table, key) => {
      key("id", ID).primary();
      key("organization_id", ID).notNullable().index();
      table.string("name", 100).notNullable();
      table.string("issuer", 255).notNullable();
      // Exact, or a prefix followed by one `*`.
      table.string("subject", 255).notNullable();
      table.string("audience", 255).notNullable();
      table.text("claims").notNullable(); // JSON: further claims and the values that they must have
      table.string("scopes", 255).notNullable();
      key("created_by", CLIENT_ID).notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("last_used_at");
    });
  },
};
