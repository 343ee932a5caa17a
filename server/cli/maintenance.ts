import type { Engine } from "../../adapters/database/engine.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { encryptionKeys } from "../keys/encryption-keys.ts";
import { createMailer } from "../mail/mailer.ts";
import { describePlans } from "../production-warnings.ts";
import { hostsOf, publicUrlsOf } from "../public-urls.ts";
import { describeScope } from "../rate-limits/scope.ts";
import { describeStartupError } from "../startup-errors.ts";
import { type Command, type CommandContext, CommandError } from "./command.ts";

type Check = { name: string; ok: boolean; detail: string };

const ENGINE_NAMES: Record<Engine, string> = {
  sqlite: "SQLite",
  postgres: "PostgreSQL",
  mysql: "MySQL or MariaDB",
};

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
  {
    name: "doctor",
    summary: "Check the settings, database and keys without changing anything",
    isReadOnly: true,
    migrates: false,
    run: async (context) => ({ checks: await runChecks(context) }),
  },
];

/** Returns whether a result contains a failed check or a broken log. */
export function hasFailed(result: object): boolean {
  const { checks = [], logs = [] } = result as { checks?: { ok: boolean }[]; logs?: { ok: boolean }[] };
  return [...checks, ...logs].some(({ ok }) => !ok);
}

async function runChecks(context: CommandContext): Promise<Check[]> {
  const { storage, settings } = context;
  const check = (name: string, inspect: () => Promise<string>) =>
    runCheck(name, inspect, settings.DATABASE_URL);
  return [
    { name: "settings", ok: true, detail: "valid" },
    await check("database", async () => {
      await storage.pendingMigrations();
      return `connected (${ENGINE_NAMES[storage.engine]})`;
    }),
    await check("migrations", async () => {
      await storage.rejectNewerSchema();
      const pending = await storage.pendingMigrations();
      if (pending.length)
        throw new Error(`pending: ${pending.join(", ")} (run "linkgate migrate" or start the server)`);
      return "up to date";
    }),
    await check("keys", async () => {
      if ((await storage.pendingMigrations()).length > 0)
        throw new Error("not checked: apply the pending migrations first");
      return (await storage.keys.check()) ? "decrypted" : "none yet; the first start creates them";
    }),
    await check("encryption", () => checkEncryption(context)),
    checkUrls(context),
    ...(settings.SMTP_URL ? [await check("mail", () => checkMail(context))] : []),
    { name: "rate limits", ok: true, detail: describeScope(settings) },
    { name: "plans", ok: true, detail: describePlans(settings) },
  ];
}

async function checkEncryption({ storage, settings }: CommandContext): Promise<string> {
  const { length } = encryptionKeys(settings);
  if (length === 1) return "one key";
  if ((await storage.pendingMigrations()).length > 0) return `${length} keys`;
  const outdated = await storage.countOutdatedCiphertexts();
  if (outdated > 0) return `${length} keys; ${outdated} stored values still need an older one`;
  return `${length} keys; the older ones can be removed (run "linkgate keys prune", or change ENCRYPTION_KEY)`;
}

/** Connects to the SMTP server and signs in, but sends nothing. */
async function checkMail({ settings }: CommandContext): Promise<string> {
  const mailer = createMailer(settings);
  try {
    await mailer?.verify();
    return `connected, sender ${settings.SMTP_FROM}`;
  } finally {
    mailer?.close();
  }
}

function checkUrls({ settings }: CommandContext): Check {
  const urls = publicUrlsOf(settings, settings.PORT);
  const { base, mcp, short } = urls;
  const isInsecure = settings.isProduction && !base.startsWith("https:");
  const remark = isInsecure
    ? "; set BASE_URL to an https URL"
    : settings.BASE_URL
      ? ""
      : "; BASE_URL is not set, so these are the defaults";
  return {
    name: "addresses",
    ok: !isInsecure,
    detail: `issuer ${base}, MCP ${mcp}, short links ${short}${remark}${settings.TRUST_PROXY ? proxyRemark(urls) : ""}`,
  };
}

/** Names the Host headers that a proxy has to pass on. */
function proxyRemark(urls: PublicUrls): string {
  return `; requests through the proxy need the header Host: ${[...hostsOf(urls)].join(" or ")}`;
}

async function runCheck(name: string, inspect: () => Promise<string>, databaseUrl: string): Promise<Check> {
  try {
    return { name, ok: true, detail: await inspect() };
  } catch (error) {
    return { name, ok: false, detail: describeStartupError(error, databaseUrl) ?? (error as Error).message };
  }
}
