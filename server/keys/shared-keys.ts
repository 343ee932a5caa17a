import { createECDH, generateKeyPair, hkdfSync, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import type { JWK } from "oidc-provider";
import { newSecret } from "../../adapters/crypto/ids.ts";
import type { KeyStore } from "../../adapters/crypto/keys.ts";
import { ID_TOKEN_LIFETIME, SESSION_LIFETIME } from "../settings/token-lifetimes.ts";

/** A new key is published longer than this before it signs. In seconds. */
export const KEY_SET_MAX_AGE = 300;
/** How often a server looks for new keys. A key must be known for longer than this before it is used. */
export const KEY_REFRESH_MS = 5_000;
/** Until then, every server has new keys, even one that is late. */
export const KEY_SPREAD_MS = 2 * KEY_REFRESH_MS;
/** Until then, every client has fetched a new public key. */
export const KEY_PUBLISH_MS = 3 * KEY_SET_MAX_AGE * 1000;

const RSA_BITS = 2048; // RFC 7518 §3.3: the minimum
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
// Clocks of processes and clients differ by less.
const SKEW_MS = 60_000;

export type Keys = {
  /**
   * RS256, which every OpenID Connect client can verify (OIDC Discovery §3), and ES256, which FAPI 2.0 requires. The
   * first key of each algorithm signs.
   */
  jwks: { keys: JWK[] };
  /** The first one signs, all of them verify. */
  cookies: string[];
  /** Signs cursors and form tokens; the secret of DPoP nonces is derived from it. */
  signing: string;
};

/** In epoch milliseconds; the first key has none. */
export type Scheduled = { active_from?: number };

export type StoredKeys = {
  signing: (JWK & Scheduled)[];
  cookies: ({ key: string } & Scheduled)[];
  secret: string;
};

export type KeyKind = "signing" | "cookies";
type KeyOf<Kind extends KeyKind> = StoredKeys[Kind][number];

/** How long what a key signs is valid, in milliseconds. */
export const LIFETIME_MS: Record<KeyKind, number> = {
  signing: ID_TOKEN_LIFETIME * 1000 + SKEW_MS,
  cookies: SESSION_LIFETIME * 1000 + SKEW_MS,
};

const PURPOSES: Record<KeyKind, string> = { signing: "jwks", cookies: "cookies" };
const SECRET = "signing";

/** Creates missing keys. Throws WrongEncryptionKey if another key encrypted them. */
export async function loadStoredKeys(store: KeyStore): Promise<StoredKeys> {
  const load = async <Kind extends KeyKind>(kind: Kind) =>
    parse(kind, await store.load(PURPOSES[kind], async () => serialize(kind, [await generate(kind)])));
  return {
    signing: await load("signing"),
    cookies: await load("cookies"),
    secret: await store.load(SECRET, async () => newSecret("")),
  };
}

export function keysAt({ signing, cookies, secret }: StoredKeys, now: number): Keys {
  const inUse = keysInUse(signing, now, LIFETIME_MS.signing);
  return {
    jwks: { keys: inUse.flatMap(({ active_from: _, ...jwk }) => [jwk as JWK, deriveEcKey(jwk as JWK)]) },
    cookies: keysInUse(cookies, now, LIFETIME_MS.cookies).map(({ key }) => key),
    signing: secret,
  };
}

/** A new key is used from `activeFrom` on; if the others are compromised, as the only one. */
export type Rotation = { activeFrom: number; compromised: boolean };

export async function rotateKey(store: KeyStore, kind: KeyKind, rotation: Rotation): Promise<void> {
  const key = { ...(await generate(kind)), active_from: rotation.activeFrom };
  await changeKeys(store, kind, (keys) =>
    rotation.compromised ? [key] : [key, ...withoutEnded(keys, Date.now(), LIFETIME_MS[kind])],
  );
}

export async function deleteEndedKeys(store: KeyStore, stored: StoredKeys, now: number): Promise<void> {
  for (const kind of ["signing", "cookies"] as const) {
    const lifetime = LIFETIME_MS[kind];
    const hasEnded = stored[kind].some((_, index) => endOf(stored[kind], index, lifetime) <= now);
    if (hasEnded) await changeKeys(store, kind, (keys) => withoutEnded(keys, now, lifetime));
  }
}

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
  const key = kind === "signing" ? await generateJwk() : { key: newSecret("") };
  return key as KeyOf<Kind>;
}

async function generateJwk(): Promise<JWK> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: RSA_BITS });
  const kid = randomBytes(8).toString("base64url");
  return { ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" } as JWK;
}

/** Derives a key on P-256 from an RSA key, so that both are rotated as one (FIPS 186-5 §A.2.1). */
function deriveEcKey({ d, kid }: JWK): JWK {
  const seed = Buffer.from(hkdfSync("sha256", String(d), "", "linkgate id_token ES256", 48));
  const scalar = (BigInt(`0x${seed.toString("hex")}`) % (P256_ORDER - 1n)) + 1n;
  const privateKey = Buffer.from(scalar.toString(16).padStart(64, "0"), "hex");
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(privateKey);
  const point = ecdh.getPublicKey(); // uncompressed: 0x04, x, y
  return {
    kty: "EC",
    crv: "P-256",
    x: point.subarray(1, 33).toString("base64url"),
    y: point.subarray(33).toString("base64url"),
    d: privateKey.toString("base64url"),
    kid: `${kid}-es256`,
    use: "sig",
    alg: "ES256",
  };
}

/**
 * Returns the key to sign with, then those that only verify. Takes `keys` newest first: a new one is known before it
 * is used, and its predecessor stays valid until what it signed last has expired.
 */
export function keysInUse<Key extends Scheduled>(
  keys: readonly Key[],
  now: number,
  lifetimeMs: number,
): [Key, ...Key[]] {
  const valid = withoutEnded(keys, now, lifetimeMs);
  const active = valid.find((key) => activeFrom(key) <= now) ?? (valid.at(-1) as Key);
  return [active, ...valid.filter((key) => key !== active)];
}

/** After the successor of a key was first used, its signatures expire one by one. */
export function endOf(keys: readonly Scheduled[], index: number, lifetimeMs: number): number {
  const successor = keys[index - 1];
  return successor ? activeFrom(successor) + lifetimeMs : Number.POSITIVE_INFINITY;
}

export function withoutEnded<Key extends Scheduled>(
  keys: readonly Key[],
  now: number,
  lifetimeMs: number,
): Key[] {
  return keys.filter((_, index) => endOf(keys, index, lifetimeMs) > now);
}

export function activeFrom({ active_from = 0 }: Scheduled): number {
  return active_from;
}
