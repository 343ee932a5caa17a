import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { newSecret } from "../../../adapters/crypto/ids.ts";
import {
  encryptionKeys,
  KeyFileBusy,
  keyFileOf,
  lockKeyFile,
  rejectLostKey,
  writeKeyFile,
} from "../../keys/encryption-keys.ts";
import * as sharedKeys from "../../keys/shared-keys.ts";
import { type CommandContext, CommandError, eitherOf } from "../execution/command.ts";
import { createProgress, shareOf } from "../execution/progress.ts";

const KINDS = ["signing", "cookies", "encryption"] as const;
const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000 };

/** Lists all keys, never the keys themselves. */
export async function listAllKeys(context: CommandContext): Promise<object> {
  return { ...(await listKeys(context)), encryption: await encryptionState(context) };
}

function parseKind(text = ""): (typeof KINDS)[number] {
  const kind = KINDS.find((known) => known === text);
  if (kind) return kind;
  throw new CommandError("invalid_kind", `The kind of key must be ${eitherOf(KINDS)}.`);
}

/** Rotates the kind of key that the first argument names. */
export async function rotateKeys(context: CommandContext): Promise<object> {
  const kind = parseKind(context.args[0]);
  const compromised = Boolean(context.options.compromised);
  const publishFor = context.options.publishFor;
  if (publishFor !== undefined && (kind !== "signing" || compromised))
    throw new CommandError(
      "invalid_options",
      "--publish-for is for signing keys, and not with --compromised.",
    );
  if (kind === "encryption") {
    if (compromised)
      throw new CommandError("invalid_options", "--compromised is for signing and cookie keys.");
    return rotateEncryptionKey(context);
  }
  const delay = compromised ? 0 : kind === "cookies" ? sharedKeys.KEY_SPREAD_MS : parseTime(publishFor);
  await sharedKeys.loadStoredKeys(context.storage.keys); // creates them on a new database
  await sharedKeys.rotateKey(context.storage.keys, kind, { activeFrom: Date.now() + delay, compromised });
  return { [kind]: (await listKeys(context))[kind] };
}

function parseTime(text: unknown): number {
  if (text === undefined) return sharedKeys.KEY_PUBLISH_MS;
  const [, count, unit = ""] = /^(\d{1,6})([smh])$/.exec(String(text)) ?? [];
  const time = Number(count) * (UNITS[unit] ?? Number.NaN);
  if (time >= sharedKeys.KEY_SPREAD_MS) return time;
  const message = `--publish-for must be a time of at least ${sharedKeys.KEY_SPREAD_MS / 1000}s, for example 15m or 24h.`;
  throw new CommandError("invalid_publish_for", message);
}

async function listKeys({ storage, settings }: CommandContext) {
  await rejectLostKey(settings, storage);
  if ((await storage.keys.check()) === 0)
    throw new CommandError("no_keys", "There are no keys yet. The first start of the server creates them.");
  const { signing, cookies } = await sharedKeys.loadStoredKeys(storage.keys);
  const now = Date.now();
  return {
    signing: describe("signing", signing, now, ({ kid }) => ({ kid })),
    cookies: describe("cookies", cookies, now, () => ({})),
  };
}

function describe<Key extends sharedKeys.Scheduled>(
  kind: sharedKeys.KeyKind,
  keys: readonly Key[],
  now: number,
  identify: (key: Key) => object,
) {
  const current = keys.find((key) => sharedKeys.activeFrom(key) <= now);
  return keys.map((key, index) => {
    const end = sharedKeys.endOf(keys, index, sharedKeys.LIFETIME_MS[kind]);
    const waits = sharedKeys.activeFrom(key) > now ? "published" : "verifies only";
    return {
      ...identify(key),
      state: key === current ? "active" : end <= now ? "expired" : waits,
      active_from: toTimestamp(sharedKeys.activeFrom(key)),
      valid_until: toTimestamp(end),
    };
  });
}

function toTimestamp(time: number): string | null {
  return time > 0 && Number.isFinite(time) ? new Date(time).toISOString() : null;
}

async function encryptionState({ storage, settings }: CommandContext) {
  return {
    source: keyFileOf(settings) ?? "ENCRYPTION_KEY",
    keys: encryptionKeys(settings).length,
    outdated: await storage.countOutdatedCiphertexts(),
  };
}

/** First only decrypts with a new key: servers must know the key before they see what it encrypted. */
async function rotateEncryptionKey(context: CommandContext): Promise<object> {
  const { settings, storage, note } = context;
  const file = keyFileOf(settings);
  const key = newSecret("");
  if (!file) {
    const next = `Set ENCRYPTION_KEY to ${settings.ENCRYPTION_KEY},<new key> and restart every server, then to <new key>,${settings.ENCRYPTION_KEY} and restart again. Remove the older key when "keys list" counts 0 outdated values.`;
    return { new_key: key, next: next.replaceAll(settings.ENCRYPTION_KEY as string, "<current key>") };
  }
  return change(file, async () => {
    const older = encryptionKeys(settings);
    const newer = Buffer.from(key, "base64url");
    writeKeyFile(file, [...older, newer]);
    note(`Waiting ${sharedKeys.KEY_SPREAD_MS / 1000} seconds for running servers to read the new key.`);
    await sleep(sharedKeys.KEY_SPREAD_MS);
    writeKeyFile(file, [newer, ...older]);
    storage.useEncryptionKeys([newer, ...older]);
    note("Encrypting stored secrets with the new key.");
    const done = (await reencrypt(context)) ?? { reencrypted: 0, unreadable: 0 };
    return { encryption: { ...(await encryptionState(context)), ...done } };
  });
}

async function reencrypt({ storage }: CommandContext) {
  const printProgress = createProgress("values");
  const total = await storage.countOutdatedCiphertexts();
  return storage.reencrypt(undefined, (done) => printProgress(done, shareOf(done, total)));
}

export async function pruneEncryptionKeys(context: CommandContext): Promise<object> {
  const { settings, storage, note } = context;
  const file = keyFileOf(settings);
  if (!file) throw new CommandError("no_key_file", "Remove the older keys from ENCRYPTION_KEY.");
  return change(file, async () => {
    const keys = encryptionKeys(settings);
    const [current, ...older] = keys;
    storage.useEncryptionKeys(keys);
    // Until running servers have read the file, they encrypt with an older key.
    const wait = Math.min(
      statSync(file).mtimeMs + sharedKeys.KEY_SPREAD_MS - Date.now(),
      sharedKeys.KEY_SPREAD_MS,
    );
    if (older.length > 0 && wait > 0) {
      note(`Waiting ${Math.ceil(wait / 1000)} seconds for running servers to use the current key.`);
      await sleep(wait);
    }
    await reencrypt(context);
    const outdated = await storage.countOutdatedCiphertexts();
    if (outdated > 0) {
      const message = `${outdated} stored values still need an older key. Try again later.`;
      throw new CommandError("keys_in_use", message);
    }
    if (older.length > 0) writeKeyFile(file, [current as Buffer]);
    return { removed: older.length };
  });
}

async function change(file: string, run: () => Promise<object>): Promise<object> {
  try {
    return await lockKeyFile(file, run);
  } catch (error) {
    throw error instanceof KeyFileBusy ? new CommandError("keys_busy", error.message) : error;
  }
}
