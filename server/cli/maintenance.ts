import { createMissingKey } from "../keys/encryption-keys.ts";
import { type Command, CommandError } from "./command.ts";
import { doctorCommand } from "./doctor/index.ts";

/** `migrate`, `sweep`, `doctor` */
export const maintenanceCommands: Command[] = [
  {
    name: "migrate",
    summary: "Apply pending migrations",
    async run({ settings, storage }) {
      const applied = await storage.migrate();
      await createMissingKey(settings, storage);
      return { applied };
    },
  },
  {
    name: "sweep",
    summary: "Delete expired rows now; the server does this every minute",
    needs: "schema",
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
