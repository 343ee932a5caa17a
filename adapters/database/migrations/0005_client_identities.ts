import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import { createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const CLIENT_ID = 255;
const KEY_ID = 43; // a JWK thumbprint: SHA-256 in base64url

/** Adds keys of clients, trust rules for workloads, and the organization's policies on how clients authenticate. */
export const clientIdentities: Migration = {
  name: "0005_client_identities",
  async up(knex, engine) {
    await addPolicies(knex);
    await createClientKeys(knex, engine);
    await createTrustRules(knex, engine);
  },
};

// PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made some of them.

async function addPolicies(knex: Knex) {
  if (await knex.schema.hasColumn("organizations", "document_clients")) return;
  await knex.schema.alterTable("organizations", (table) => {
    // Which clients without an organization may act for this one: `known`, `any` or `none`.
    table.string("document_clients", 16).notNullable().defaultTo("known");
    table.boolean("require_dpop").notNullable().defaultTo(false);
    table.boolean("enterprise_authorization").notNullable().defaultTo(false);
  });
}

async function createClientKeys(knex: Knex, engine: Engine) {
  await createTable(knex, "client_keys", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "client_id", CLIENT_ID, engine).notNullable();
    // The thumbprint of the key (RFC 7638), which is its `kid` unless the JWK names another one.
    keyColumn(table, "thumbprint", KEY_ID, engine).notNullable();
    table.text("jwk").notNullable(); // the public key
    keyColumn(table, "created_by", CLIENT_ID, engine).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("last_used_at");
    table.unique(["client_id", "thumbprint"]);
  });
}

async function createTrustRules(knex: Knex, engine: Engine) {
  await createTable(knex, "trust_rules", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "organization_id", ID, engine).notNullable().index();
    table.string("name", 100).notNullable();
    table.string("issuer", 255).notNullable();
    // Exact, or a prefix followed by one `*`.
    table.string("subject", 255).notNullable();
    table.string("audience", 255).notNullable();
    table.text("claims").notNullable(); // JSON: further claims and the values that they must have
    table.string("scopes", 255).notNullable();
    keyColumn(table, "created_by", CLIENT_ID, engine).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("last_used_at");
  });
}
