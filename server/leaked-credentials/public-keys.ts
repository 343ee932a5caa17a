import { createPublicKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { GuardedFetch } from "../../resources/outbound/guarded-fetch.ts";

/** Finds the public key of a scanner by its id. */
export type FindKey = (id: string) => Promise<KeyObject | undefined>;

// The form in which GitHub publishes its keys.
const keyDocument = z.object({
  public_keys: z.array(z.object({ key_identifier: z.string(), key: z.string() })),
});
const TTL_MS = 60 * 60 * 1000;
// A report with an invented key id must not cause a request each.
const COOLDOWN_MS = 60_000;

/**
 * Creates the look-up of the keys in a document, which is read again after an hour, or for an unknown id.
 * @param source an https URL, or a file
 */
export function createFindKey(
  source: string,
  fetch: GuardedFetch,
  onError: (error: unknown) => void,
): FindKey {
  let keys = new Map<string, KeyObject>();
  let readAt = 0;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    readAt = Date.now();
    keys = await readKeys(source, fetch);
  }

  return async (id) => {
    const age = Date.now() - readAt;
    if (age > TTL_MS || (!keys.has(id) && age > COOLDOWN_MS)) {
      reading ??= refresh()
        .catch((error: unknown) => {
          // A valid report must not be refused because its key could not be read again.
          if (keys.size === 0) throw error;
          onError(error);
        })
        .finally(() => {
          reading = undefined;
        });
    }
    await reading;
    return keys.get(id);
  };
}

async function readKeys(source: string, fetch: GuardedFetch): Promise<Map<string, KeyObject>> {
  const text = source.startsWith("https:") ? await fetchText(source, fetch) : await readFile(source, "utf8");
  const { public_keys } = keyDocument.parse(JSON.parse(text));
  return new Map(public_keys.map(({ key_identifier, key }) => [key_identifier, createPublicKey(key)]));
}

async function fetchText(url: string, fetch: GuardedFetch): Promise<string> {
  const response = await fetch(url);
  if (response.status !== 200)
    throw new Error(`the public keys could not be fetched: status ${response.status}`);
  return response.text();
}
