import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { openStorage, type Storage } from "../../adapters/index.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { WEBHOOK_EVENTS } from "../../resources/events/schemas.ts";
import { limitsOf } from "../../resources/plans.ts";
import { createMissingKey, encryptionKeys } from "../keys/encryption-keys.ts";
import { createLog, type Log } from "../log.ts";
import { startService } from "../process/service.ts";
import { followSignals, type RunningProcess } from "../process/signals.ts";
import { readSettings, type Settings } from "../settings/config.ts";
import { type ReceivedEvent, type Receiver, startReceiver } from "./receiver.ts";
import { type Seeded, seed } from "./seed.ts";

export type SentMail = { to: string; subject: string; text: string };

export type DevServer = RunningProcess & { urls: PublicUrls; seeded: Seeded };

type Listeners = { onMail(mail: SentMail): void; onEvent(event: ReceivedEvent): void };

// Longer than requests and the database get.
const STOP_MS = 15_000;
// Requests would hide emails and events.
const LOG_LEVEL = "warn";

/** Starts a server until a signal stops it. Throws InvalidSettings for a wrong port, or StartupError. */
export async function runDevServer(port: string, listeners: Listeners): Promise<DevServer> {
  const log = createLog(LOG_LEVEL, "auto");
  const starting = start(port, log, listeners);
  followSignals(starting, log, STOP_MS);
  return starting;
}

async function start(port: string, log: Log, listeners: Listeners): Promise<DevServer> {
  const started: Closer[] = [];
  try {
    return await startAll(started, port, log, listeners);
  } catch (error) {
    await closeAll(started);
    throw error;
  }
}

type Closer = () => void | Promise<void>;

/** Closes the newest first, and the others even if it fails. Node 22 has no AsyncDisposableStack. */
async function closeAll(started: Closer[]): Promise<void> {
  const close = started.pop();
  if (!close) return;
  try {
    await close();
  } finally {
    await closeAll(started);
  }
}

/** Only what is temporary and printed differs from a server that people use: its security is the same. */
async function startAll(
  started: Closer[],
  port: string,
  log: Log,
  { onMail, onEvent }: Listeners,
): Promise<DevServer> {
  const folder = await mkdtemp(path.join(tmpdir(), "linkgate-dev-"));
  started.push(() => rm(folder, { recursive: true, force: true }));
  const settings = readSettings({
    PORT: port,
    DATABASE_URL: `sqlite:${path.join(folder, "linkgate.sqlite")}?synchronous=normal`,
    LOG_LEVEL,
    // For the receiver, and for those of the user.
    WEBHOOK_ALLOW_HOSTS: "127.0.0.1,localhost",
    // Not connected to, but pages offer email.
    SMTP_URL: "smtp://localhost",
    SMTP_FROM: "linkgate <noreply@example.com>",
  });
  const seeded = await fill(settings);
  const receiver = await startReceiver(onEvent);
  started.push(receiver.close);
  const mailer = {
    send: async ({ to, subject, text }: SentMail) => onMail({ to, subject, text }),
    close() {},
  };
  const service = await startService(settings, log, {}, { mailer });
  started.push(service.close);
  await addWebhook(service.storage, seeded, receiver);
  return { ...service, seeded, close: () => closeAll(started) };
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
  if (first) await webhooks.create(first.id, first.owner, fields, secret, limitsOf);
}
