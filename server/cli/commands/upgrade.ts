import type { PlannedMigration } from "../../../adapters/database/migrations/plan.ts";
import { VERSION } from "../../version.ts";
import { type Command, type CommandContext, CommandError } from "../execution/command.ts";

type BlockedWrites = "none" | "tables" | "all";

type Report = {
  version: string;
  database: { version: string | null; schema: string };
  pending: (PlannedMigration & { blocked_writes: BlockedWrites })[];
  /** 0 for less than one. */
  seconds: number;
  /** Whether the version of the database can use the new schema: beside this version, and after a rollback. */
  previous_version_works: boolean;
};

export const upgradeCommand: Command = {
  name: "upgrade",
  summary: "Show pending migrations",
  description: "Show pending migrations and how long they may take",
  options: { "--check": "required: the command changes nothing. To apply the changes, use migrate" },
  example: "--check",
  isReadOnly: true,
  needs: "database",
  run: checkUpgrade,
  describe: (report) => describe(report as Report),
};

async function checkUpgrade({ options, storage }: CommandContext): Promise<Report> {
  if (!options.check)
    throw new CommandError(
      "usage",
      'Use "linkgate upgrade --check" to see what this version will change, and "linkgate migrate" to apply it.',
    );
  const { schema, version = null, pending, isCompatible } = await storage.planUpgrade();
  if (schema === undefined)
    throw new CommandError(
      "no_database",
      'DATABASE_URL: the database is empty. Start the server or run "linkgate migrate" to create its tables.',
    );
  return {
    version: VERSION,
    database: { version, schema },
    pending: pending.map((planned) => ({ ...planned, blocked_writes: blockedBy(planned, storage.engine) })),
    seconds: pending.reduce((sum, { seconds }) => sum + seconds, 0),
    previous_version_works: isCompatible,
  };
}

/** SQLite has one writer, which a migration is until it commits. Elsewhere, it locks the rows that it changes. */
function blockedBy({ tables }: PlannedMigration, engine: CommandContext["storage"]["engine"]): BlockedWrites {
  if (tables.length === 0) return "none";
  return engine === "sqlite" ? "all" : "tables";
}

function describe({ version, database, pending, seconds, previous_version_works }: Report): string {
  const previous = database.version ? `linkgate ${database.version}` : "another version";
  const origin = `The database is at schema ${database.schema} of ${previous}. This is linkgate ${version}.`;
  if (pending.length === 0) return `${origin}\nThe database is up to date.`;
  const count = pending.length === 1 ? "1 migration is" : `${pending.length} migrations are`;
  return [
    `${origin} ${count} pending:`,
    "",
    ...pending.flatMap((planned) => [`${planned.name}: ${planned.changes}`, `  ${describeEffort(planned)}`]),
    "",
    `In total: ${durationOf(seconds)}.`,
    previous_version_works
      ? "The previous version can use the new schema: you can restart one server after the other, and roll back without a backup."
      : "The previous version can't use the new schema: stop all servers first. To roll back, you need the backup.",
    'Back up the database first. Then restart the servers with this version, or run "linkgate migrate".',
  ].join("\n");
}

function describeEffort({ tables, seconds, blocked_writes }: Report["pending"][number]): string {
  if (tables.length === 0) return "No rows change. It takes less than a second.";
  const rows = tables.map(({ name, rows }) => `${rows.toLocaleString("en")} rows of ${name}`).join(" and ");
  const table = tables.length === 1 ? "this table" : "these tables";
  const writes = blocked_writes === "all" ? "All writes" : `Writes to ${table}`;
  return `${rows} change. It takes ${durationOf(seconds)}. ${writes} wait until then.`;
}

function durationOf(seconds: number): string {
  if (seconds < 1) return "less than a second";
  if (seconds < 120) return `about ${inUnit(seconds, "second")}`;
  return `about ${seconds < 7200 ? inUnit(seconds / 60, "minute") : inUnit(seconds / 3600, "hour")}`;
}

function inUnit(amount: number, unit: string): string {
  return Math.ceil(amount).toLocaleString("en", { style: "unit", unit, unitDisplay: "long" });
}
