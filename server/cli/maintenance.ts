import { addressesOf } from "../addresses.ts";
import { type Command, CommandError, type Context } from "./command.ts";

type Check = { name: string; ok: boolean; detail: string };

/** `migrate`, `sweep`, `doctor` */
export const maintenanceCommands: Command[] = [
  {
    usage: "migrate",
    summary: "brings the database up to date",
    arguments: { least: 0, most: 0 },
    migrates: false,
    run: async ({ storage }) => ({ applied: await storage.migrate() }),
  },
  {
    usage: "sweep",
    summary: "removes expired rows now; the server does it every minute",
    arguments: { least: 0, most: 0 },
    migrates: true,
    async run({ storage }) {
      const deleted = await storage.sweep();
      if (!deleted) throw new CommandError("busy", "another process is sweeping right now");
      return { deleted };
    },
  },
  {
    usage: "doctor",
    summary: "checks the settings, the database and the keys; changes nothing",
    arguments: { least: 0, most: 0 },
    migrates: false,
    run: async (context) => ({ checks: await examine(context) }),
  },
];

/** Whether an answer tells that something is wrong. */
export function hasFailed(answer: object): boolean {
  const { checks } = answer as { checks?: Check[] };
  return checks?.some(({ ok }) => !ok) ?? false;
}

async function examine({ settings, storage }: Context): Promise<Check[]> {
  const { base, mcp, short } = addressesOf(settings, settings.PORT);
  return [
    { name: "settings", ok: true, detail: "all of them can be read" },
    await check("database", async () => {
      await storage.pendingMigrations();
      return `${storage.engine} answers`;
    }),
    await check("migrations", async () => {
      const pending = await storage.pendingMigrations();
      if (pending.length)
        throw new Error(`to be applied: ${pending.join(", ")} (run migrate, or start the server)`);
      return "up to date";
    }),
    await check("keys", async () => {
      const opened = await storage.keys.check();
      return opened ? "the encryption key opens them" : "none yet: the first start makes them";
    }),
    {
      name: "addresses",
      ok: !settings.isProduction || base.startsWith("https:"),
      detail: `issuer ${base}, MCP ${mcp}, short links ${short}${
        settings.isProduction && !base.startsWith("https:") ? ": set BASE_URL to an https address" : ""
      }`,
    },
  ];
}

async function check(name: string, examineIt: () => Promise<string>): Promise<Check> {
  try {
    return { name, ok: true, detail: await examineIt() };
  } catch (error) {
    return { name, ok: false, detail: (error as Error).message };
  }
}
