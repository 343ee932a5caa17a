import type { Knex } from "knex";
import manifest from "../../../package.json" with { type: "json" };
import type { SchemaCompatibilityRow } from "../tables.ts";
import type { LaterMigration } from "./migration.ts";

/** The database has been migrated by a newer version, in a way that this version can't use. */
export class IncompatibleSchema extends Error {
  override readonly name = "IncompatibleSchema";
  constructor(newest: string, newestVersion: string | undefined, newestKnown: string) {
    const by = newestVersion ? `linkgate ${newestVersion}` : "a newer version of linkgate";
    super(
      `The database is at schema ${newest} of ${by}, but this is linkgate ${manifest.version}, which can't use schemas after ${newestKnown}. Start the newer version, or restore a backup from before the upgrade.`,
    );
  }
}

/** Records which versions can use the schema that a migration leaves. */
export async function recordCompatibility(knex: Knex, migration: LaterMigration): Promise<void> {
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
  const rows = (await knex.schema.hasTable("schema_compatibility"))
    ? await knex("schema_compatibility").whereIn("migration", newer)
    : [];
  const recorded = new Map<string, SchemaCompatibilityRow>(rows.map((row) => [row.migration, row]));
  const isCompatible = (name: string) => known.includes(recorded.get(name)?.oldest_compatible ?? "");
  if (!newer.every(isCompatible))
    throw new IncompatibleSchema(newest, recorded.get(newest)?.version, String(known.at(-1)));
}
