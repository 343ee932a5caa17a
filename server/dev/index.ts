import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { openStorage } from "../../adapters/index.ts";
import { limitsOf } from "../../resources/plans.ts";
import { encryptionKeys } from "../keys/encryption-keys.ts";
import { createLog, type Log } from "../log.ts";
import { createLogOutput } from "../log-output.ts";
import { listen, prepareStorage } from "../process/prepare.ts";
import { startService } from "../process/service.ts";
import { stopOnSignals } from "../process/signals.ts";
import { readSettings, type Settings } from "../settings/config.ts";
import { type ReceivedEvent, receiveEvents } from "./receiver.ts";
import { type SeededOrganization, seed } from "./seed.ts";

export type SentMail = { to: string; subject: string; text: string };

export type DevServer = Awaited<ReturnType<typeof start>>["description"];

type Listeners = { onMail(mail: SentMail): void; onEvent(event: ReceivedEvent): void };

// Longer than the limits of requests and of the database.
const STOP_MS = 15_000;
// Requests would hide emails and events.
const LOG_LEVEL = "warn";
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Starts a server until a signal stops it; during the start, a signal ends the process immediately. Throws
 * InvalidSettings for a wrong port, or StartupError.
 */
export async function runDevServer(port: string, listeners: Listeners): Promise<DevServer> {
  const stop = () => process.exit(0);
  for (const signal of SIGNALS) process.once(signal, stop);
  const log = createLog(LOG_LEVEL, createLogOutput("auto"));
  const { description, ...server } = await start(port, listeners, log);
  for (const signal of SIGNALS) process.off(signal, stop);
  stopOnSignals(Promise.resolve(server), log, STOP_MS);
  return description;
}

/** Security is the same as in production. Only the database is temporary, and emails are printed. */
async function start(port: string, { onMail, onEvent }: Listeners, log: Log) {
  const given = readSettings({
    PORT: port,
    LOG_LEVEL,
    // For the receiver of this command, and the user's own.
    WEBHOOK_ALLOW_HOSTS: "127.0.0.1,localhost",
    // Not connected to, but pages offer email.
    SMTP_URL: "smtp://localhost",
    SMTP_FROM: "linkgate <noreply@example.com>",
  });
  // Before the data is created, which takes seconds.
  const probe = createServer();
  await listen(probe, "PORT", given);
  probe.close();
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-dev-"));
  // Retries, because the threads of the database may still write to it.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const database = `sqlite:${path.join(folder, "linkgate.sqlite")}?synchronous=normal`;
  const settings = { ...given, DATABASE_URL: database };
  const { password, organizations } = await fill(settings, log);
  const mailer = {
    send: async ({ to, subject, text }: SentMail) => onMail({ to, subject, text }),
    close() {},
  };
  const service = await startService(settings, log, {}, { mailer });
  const { base, api, mcp } = service.urls;
  const endReceiver = await receiveEvents(service.storage, organizations[0] as SeededOrganization, onEvent);
  return {
    ...service,
    close: () => service.close().finally(endReceiver),
    description: {
      dashboard: `${base}/dashboard`,
      api,
      mcp,
      docs: `${base}/docs`,
      base,
      password,
      organizations: organizations.map(({ owner, ...described }) => described),
    },
  };
}

/** Before the server starts, which would create the demo organization in an empty database. */
async function fill(settings: Settings, log: Log) {
  const storage = openStorage(settings.DATABASE_URL, encryptionKeys(settings), { limitsOf });
  try {
    await prepareStorage(settings, storage, log);
    return await seed(storage);
  } finally {
    await storage.close();
  }
}
