import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { openStorage, type Storage } from "../../adapters/index.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { WEBHOOK_EVENTS } from "../../resources/events/schemas.ts";
import { limitsOf } from "../../resources/plans.ts";
import { createMissingKey, encryptionKeys } from "../keys/encryption-keys.ts";
import { createLog } from "../log.ts";
import { createLogOutput } from "../log-output.ts";
import { listen } from "../process/prepare.ts";
import { startService } from "../process/service.ts";
import { followSignals, type RunningProcess } from "../process/signals.ts";
import { readSettings, type Settings } from "../settings/config.ts";
import { type ReceivedEvent, type Receiver, startReceiver } from "./receiver.ts";
import { type Seeded, seed } from "./seed.ts";

export type SentMail = { to: string; subject: string; text: string };

export type DevServer = RunningProcess & { urls: PublicUrls; seeded: Seeded };

type Listeners = { onMail(mail: SentMail): void; onEvent(event: ReceivedEvent): void };

// Longer than the limits of requests and of the database.
const STOP_MS = 15_000;
// Requests would hide emails and events.
const LOG_LEVEL = "warn";
const createDevLog = () => createLog(LOG_LEVEL, createLogOutput("auto"));
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Starts a server until a signal stops it; during the start, a signal ends the process immediately. Throws
 * InvalidSettings for a wrong port, or StartupError.
 */
export async function runDevServer(port: string, listeners: Listeners): Promise<DevServer> {
  const stop = () => process.exit(0);
  for (const signal of SIGNALS) process.once(signal, stop);
  const server = await start(port, listeners);
  for (const signal of SIGNALS) process.off(signal, stop);
  followSignals(Promise.resolve(server), createDevLog(), STOP_MS);
  return server;
}

/** Security is the same as in production. Only the database is temporary, and emails are printed. */
async function start(port: string, { onMail, onEvent }: Listeners): Promise<DevServer> {
  const given = readSettings({
    PORT: port,
    LOG_LEVEL,
    // For the receiver of this command, and the user's own.
    WEBHOOK_ALLOW_HOSTS: "127.0.0.1,localhost",
    // Not connected to, but pages offer email.
    SMTP_URL: "smtp://localhost",
    SMTP_FROM: "linkgate <noreply@example.com>",
  });
  await checkPort(given);
  const database = path.join(createTemporaryFolder(), "linkgate.sqlite");
  const settings = { ...given, DATABASE_URL: `sqlite:${database}?synchronous=normal` };
  const seeded = await fill(settings);
  const mailer = {
    send: async ({ to, subject, text }: SentMail) => onMail({ to, subject, text }),
    close() {},
  };
  const service = await startService(settings, createDevLog(), {}, { mailer });
  const receiver = await startReceiver(onEvent);
  await addWebhook(service.storage, seeded, receiver);
  const close = () => service.close().finally(receiver.close);
  return { ...service, seeded, close };
}

/** Creates a temporary folder, which is removed when the process exits. */
function createTemporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-dev-"));
  // Retries, because the threads of the database may still write to it.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Throws StartupError before the data is created, which takes seconds. */
async function checkPort(settings: Settings): Promise<void> {
  const server = createServer();
  await listen(server, "PORT", settings);
  server.close();
}

/** Before the server starts, which would create the demo organization in an empty database. */
async function fill(settings: Settings): Promise<Seeded> {
  const storage = openStorage(settings.DATABASE_URL, encryptionKeys(settings), { limitsOf });
  try {
    await storage.migrate();
    await createMissingKey(settings, storage);
    return await seed(storage);
  } finally {
    await storage.close();
  }
}

async function addWebhook(
  { webhooks }: Storage,
  { organizations: [first] }: Seeded,
  { url, secret }: Pick<Receiver, "url" | "secret">,
): Promise<void> {
  const fields = { url, events: [...WEBHOOK_EVENTS], enabled: true };
  if (first) await webhooks.create(first.description.id, first.owner, fields, secret);
}
