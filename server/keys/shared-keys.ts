import { generateKeyPair, hkdfSync, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import type { JWK } from "oidc-provider";
import type { KeyStore } from "../../adapters/crypto/keys.ts";
import { ID_TOKEN_LIFETIME, SESSION_LIFETIME } from "../settings/lifetimes.ts";
import { endOf, keysInUse, type Scheduled, withoutEnded } from "./schedule.ts";

const RSA_BITS = 2048; // RFC 7518 §3.3: the minimum
// Clocks of processes and clients differ by less.
const SKEW_MS = 60_000;

/** The keys that all processes share, as they are valid at one time. */
export type Keys = {
  /** Signs id_tokens: RS256, which every OpenID Connect client can verify (OIDC Discovery §3). The first key signs. */
  jwks: { keys: JWK[] };
  /** Sign cookies: the first one signs, all of them verify. */
  cookies: string[];
  /** Signs cursors and form tokens; the secret of DPoP nonces is derived from it. */
  signing: string;
};

export type SigningKey = JWK & Scheduled;
export type CookieKey = { key: string } & Scheduled;

/** The keys as they are stored, newest first: generated on first start, and encrypted in the database. */
export type StoredKeys = { signing: SigningKey[]; cookies: CookieKey[]; secret: string };

/** The keys that can be rotated. */
export type KeyKind = "signing" | "cookies";
type KeyOf<Kind extends KeyKind> = StoredKeys[Kind][number];

/** How long what a key signs is valid, in milliseconds. */
export const LIFETIME_MS: Record<KeyKind, number> = {
  signing: ID_TOKEN_LIFETIME * 1000 + SKEW_MS,
  cookies: SESSION_LIFETIME * 1000 + SKEW_MS,
};

// The names of the stored keys.
const PURPOSES: Record<KeyKind, string> = { signing: "jwks", cookies: "cookies" };
const SECRET = "signing";

/** Loads the keys; generates those that are missing. @throws WrongEncryptionKey if another key encrypted them */
export async function loadStoredKeys(store: KeyStore): Promise<StoredKeys> {
  const load = async <Kind extends KeyKind>(kind: Kind) =>
    parse(kind, await store.load(PURPOSES[kind], async () => serialize(kind, [await generate(kind)])));
  return {
    signing: await load("signing"),
    cookies: await load("cookies"),
    secret: await store.load(SECRET, async () => randomSecret()),
  };
}

/** Loads the keys that are valid now. @throws WrongEncryptionKey if another key encrypted them */
export async function loadKeys(store: KeyStore): Promise<Keys> {
  return keysAt(await loadStoredKeys(store), Date.now());
}

/** Returns the keys that are valid at a time, in epoch milliseconds. */
export function keysAt({ signing, cookies, secret }: StoredKeys, now: number): Keys {
  return {
    jwks: {
      keys: keysInUse(signing, now, LIFETIME_MS.signing).map(({ active_from: _, ...jwk }) => jwk as JWK),
    },
    cookies: keysInUse(cookies, now, LIFETIME_MS.cookies).map(({ key }) => key),
    signing: secret,
  };
}

/** When a new key is used: from `activeFrom` on, and, if the others are compromised, as the only one. */
export type Rotation = { activeFrom: number; compromised: boolean };

/** Adds a new key of a kind to the stored ones. */
export async function rotateKey(store: KeyStore, kind: KeyKind, rotation: Rotation): Promise<void> {
  const key = { ...(await generate(kind)), active_from: rotation.activeFrom };
  await changeKeys(store, kind, (keys) =>
    rotation.compromised ? [key] : [key, ...withoutEnded(keys, Date.now(), LIFETIME_MS[kind])],
  );
}

/** Deletes the keys that are no longer valid. */
export async function deleteEndedKeys(store: KeyStore, stored: StoredKeys, now: number): Promise<void> {
  for (const kind of ["signing", "cookies"] as const) {
    const lifetime = LIFETIME_MS[kind];
    const hasEnded = stored[kind].some((_, index) => endOf(stored[kind], index, lifetime) <= now);
    if (hasEnded) await changeKeys(store, kind, (keys) => withoutEnded(keys, now, lifetime));
  }
}

/** Derives the secret of DPoP nonces. */
export function nonceSecretOf({ signing }: Keys): Buffer {
  return Buffer.from(hkdfSync("sha256", signing, "", "linkgate dpop nonce", 32));
}

function changeKeys<Kind extends KeyKind>(
  store: KeyStore,
  kind: Kind,
  change: (keys: KeyOf<Kind>[]) => KeyOf<Kind>[],
): Promise<void> {
  return store.replace(PURPOSES[kind], (text) => serialize(kind, change(parse(kind, text))));
}

function serialize<Kind extends KeyKind>(kind: Kind, keys: KeyOf<Kind>[]): string {
  return JSON.stringify(kind === "signing" ? { keys } : keys);
}

function parse<Kind extends KeyKind>(kind: Kind, text: string): KeyOf<Kind>[] {
  const value = JSON.parse(text);
  return kind === "signing" ? value.keys : value;
}

async function generate<Kind extends KeyKind>(kind: Kind): Promise<KeyOf<Kind>> {
  const key = kind === "signing" ? await generateJwk() : { key: randomSecret() };
  return key as KeyOf<Kind>;
}

async function generateJwk(): Promise<JWK> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: RSA_BITS });
  const kid = randomBytes(8).toString("base64url");
  return { ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" } as JWK;
}

function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}
