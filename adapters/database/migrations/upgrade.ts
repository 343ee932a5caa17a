import type { Knex } from "knex";

/** How long after an upgrade processes of the previous version may run. */
export const UPGRADE_MS = 24 * 60 * 60 * 1000;

const FIRST = "0001_initial";
// The last one that doesn't state which earlier versions can use its schema. Version 0.2 doesn't have it.
const LAST = "0033_schema_compatibility";

/** When a database got the schema of the version after 0.2. Times are epoch milliseconds. */
export type Upgrade = {
  migratedAt: number;
  /** Whether an earlier version created the database, so that its processes may use it until `UPGRADE_MS` after that. */
  isFromPrevious: boolean;
};

/**
 * Returns when a database was migrated, and whether from an earlier version; undefined if it isn't migrated. The result
 * never changes. Knex records which migrations were applied together, as a batch, and when each was. A database whose
 * first migration was interrupted counts as one of an earlier version.
 */
export async function readUpgrade({ knex }: { knex: Knex }): Promise<Upgrade | undefined> {
  const rows = await knex("knex_migrations")
    .whereIn("name", [FIRST, LAST])
    .select("name", "batch", "migration_time");
  const first = rows.find(({ name }) => name === FIRST);
  const last = rows.find(({ name }) => name === LAST);
  if (!last) return undefined;
  return {
    migratedAt: new Date(last.migration_time).getTime(),
    isFromPrevious: first?.batch !== last.batch,
  };
}
