import { PartitionFailed } from "../../adapters/database/partitions/convert.ts";
import { type Command, type CommandContext, CommandError } from "./command.ts";
import { doctorCommand } from "./doctor/index.ts";

/** `migrate`, `sweep`, `partition`, `doctor` */
export const maintenanceCommands: Command[] = [
  {
    name: "migrate",
    summary: "Apply pending migrations",
    migrates: false,
    run: async ({ storage }) => ({ applied: await storage.migrate() }),
  },
  {
    name: "sweep",
    summary: "Delete expired rows now; the server does this every minute",
    migrates: true,
    async run({ storage }) {
      const deleted = await storage.purgeExpired();
      if (!deleted)
        throw new CommandError("busy", "Another process is deleting expired rows. Try again later.");
      return { deleted };
    },
  },
  {
    name: "partition",
    summary:
      "PostgreSQL: partition tables by time while servers run, so that expired rows are dropped with their day",
    arguments: {
      "[table...]": "deliveries, events, tokens or click_stats; by default deliveries and events",
    },
    options: {
      "--by <unit>":
        "what each partition holds: day or month. By default, a month of events and click_stats, and a day of the others",
    },
    migrates: true,
    run: partition,
  },
  doctorCommand,
];

async function partition({ args, options, storage, note }: CommandContext): Promise<object> {
  const { by } = options;
  if (by !== undefined && by !== "day" && by !== "month")
    throw new CommandError("invalid_unit", "--by must be day or month.");
  try {
    const result = await storage.partition(args, { unit: by, onStep: note });
    if (result.partitioned.length === 0) note("There is nothing to do.");
    return result;
  } catch (error) {
    throw error instanceof PartitionFailed ? new CommandError(error.code, error.message) : error;
  }
}

/** Returns whether a result contains a failed check or a broken log. */
export function hasFailed(result: object): boolean {
  const { checks = [], logs = [] } = result as { checks?: { ok: boolean }[]; logs?: { ok: boolean }[] };
  return [...checks, ...logs].some(({ ok }) => !ok);
}
