import type { Knex } from "knex";
import manifest from "../../../package.json" with { type: "json" };
import type { SchemaCompatibilityRow } from "../tables.ts";
import type { Migration } from "./migration.ts";

/** This version can't use the database: a newer version has migrated it, or one before 0.3.0 created it. */
export class IncompatibleSchema extends Error {
  override readonly name = "IncompatibleSchema";
}

// The first migration of the versions before 0.3.0, none of which was published.
const UNPUBLISHED = "0001_initial";

/** Records which versions can use the schema that a migration leaves. */
export async function recordCompatibility(knex: Knex, migration: Migration): Promise<void> {
  const row = {
    migration: migration.name,
    oldest_compatible: migration.oldestCompatible,
    version: manifest.version,
  };
  await knex("schema_compatibility").insert(row).onConflict("migration").merge();
}

/**
 * Rejects unless a version that knows the `known` migrations can use a database to which `newer` ones were applied.
 * @throws IncompatibleSchema
 */
export async function assertCompatible(knex: Knex, newer: string[], known: string[]): Promise<void> {
  const newest = newer.at(-1);
  if (newest === undefined) return;
  if (newer.includes(UNPUBLISHED))
    throw new IncompatibleSchema(
      "The database was created before linkgate 0.3.0 and can't be upgraded: use an empty database.",
    );
  const rows = (await knex.schema.hasTable("schema_compatibility"))
    ? await knex("schema_compatibility").whereIn("migration", newer)
    : [];
  const recorded = new Map<string, SchemaCompatibilityRow>(rows.map((row) => [row.migration, row]));
  const isCompatible = (name: string) => known.includes(recorded.get(name)?.oldest_compatible ?? "");
  if (newer.every(isCompatible)) return;
  const version = recorded.get(newest)?.version;
  const by = version ? `linkgate ${version}` : "a newer version of linkgate";
  throw new IncompatibleSchema(
    `The database is at schema ${newest} of ${by}, but this is linkgate ${manifest.version}, which can't use schemas after ${known.at(-1)}. Start the newer version, or restore a backup from before the upgrade.`,
  );
}
