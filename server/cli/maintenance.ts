import { type Command, CommandError } from "./command.ts";
import { doctorCommand } from "./doctor/index.ts";

/** `migrate`, `sweep`, `doctor` */
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
  doctorCommand,
];

/** Returns whether a result contains a failed check or a broken log. */
export function hasFailed(result: object): boolean {
  const { checks = [], logs = [] } = result as { checks?: { ok: boolean }[]; logs?: { ok: boolean }[] };
  return [...checks, ...logs].some(({ ok }) => !ok);
}
