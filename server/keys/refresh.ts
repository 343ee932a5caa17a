import type { Storage } from "../../adapters/index.ts";
import type { Log } from "../log.ts";
import { type Schedule, schedule } from "../schedule.ts";
import type { Settings } from "../settings/config.ts";
import { encryptionKeys, keyFileOf, readKeyFile } from "./encryption-keys.ts";
import {
  deleteEndedKeys,
  KEY_REFRESH_MS,
  type Keys,
  keysAt,
  loadStoredKeys,
  type StoredKeys,
} from "./shared-keys.ts";

const REENCRYPT_MS = 60_000;

type RefreshOptions = { storage: Storage; settings: Settings; log: Log; keys: Keys; use(keys: Keys): void };

/** Follows rotations without a restart, and re-encrypts in the background what older encryption keys encrypted. */
export function startKeyRefresh({ storage, settings, log, keys, use }: RefreshOptions): Schedule {
  const file = keyFileOf(settings);
  let ownKeys = encryptionKeys(settings);
  let inUse = JSON.stringify(keys);
  let version: string | undefined;
  let stored: StoredKeys | undefined;
  let reencryptedAt = 0;

  function refreshEncryptionKeys(): void {
    if (!file) return;
    const latest = readKeyFile(file);
    if (latest.join() === ownKeys.join()) return;
    storage.useEncryptionKeys(latest);
    ownKeys = latest;
    reencryptedAt = 0;
    log.info({ keys: latest.length }, "the encryption keys have changed");
  }

  async function refreshSharedKeys(): Promise<void> {
    const latest = await storage.keys.version();
    if (latest !== version || !stored) stored = await loadStoredKeys(storage.keys);
    version = latest;
    const now = Date.now();
    const current = keysAt(stored, now);
    const text = JSON.stringify(current);
    if (text !== inUse) {
      use(current);
      inUse = text;
      log.info({ kid: current.jwks.keys[0]?.kid }, "the signing or cookie keys have changed");
    }
    await deleteEndedKeys(storage.keys, stored, now);
  }

  async function reencryptIfDue(signal: AbortSignal): Promise<void> {
    if (ownKeys.length < 2 || Date.now() < reencryptedAt + REENCRYPT_MS) return;
    reencryptedAt = Date.now();
    const done = await storage.reencrypt(signal);
    if (done?.reencrypted) log.info(done, "encrypted stored secrets with the new key");
    if (done?.unreadable) log.error(done, "some stored secrets cannot be decrypted with any configured key");
  }

  async function refresh(signal: AbortSignal): Promise<void> {
    refreshEncryptionKeys();
    await refreshSharedKeys();
    await reencryptIfDue(signal);
  }

  return schedule(
    refresh,
    (error) => log.warn({ err: error }, "the keys could not be refreshed, will retry"),
    { everyMs: KEY_REFRESH_MS },
  );
}
