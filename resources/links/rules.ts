import { randomInt } from "node:crypto";
import { isUnbroken } from "../text.ts";

/** The most characters of a destination. */
export const URL_MAX = 2048;
// A letter that is not ASCII becomes up to nine characters of the Location header; clients take some 16 KB of headers.
const ENCODED_MAX = 8192;
/** What a slug looks like. */
export const SLUG = /^[A-Za-z0-9_-]{1,64}$/;
// No letter or digit that looks like another one: people read these aloud.
const ALPHABET = "23456789abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ";
const GENERATED_LENGTH = 7;
// 56^7 ≈ 1.7 · 10^12: a second try is rare even with a billion links.
const GENERATED = ALPHABET.length ** GENERATED_LENGTH;

/** First segments of our own addresses, in any case: they can never be slugs. */
const RESERVED = new Set(
  "v1 mcp oauth auth dashboard docs healthz readyz metrics assets interaction api app admin login logout register \
signin signup static public help support status about terms privacy www".split(" "),
);

/** What is ours: hosts that a link may not lead back to, for it could go in circles, and words that are no slugs. */
export type Own = { ownHosts: ReadonlySet<string>; ownWords: ReadonlySet<string> };

/** Why a text cannot be a destination; nothing when it can. */
export function refuseUrl(text: string, { ownHosts }: Own): string | undefined {
  if (text.length > URL_MAX) return `An address has at most ${URL_MAX} characters.`;
  if (!isUnbroken(text)) return "An address has no spaces or control characters.";
  const url = URL.parse(text);
  if (!url) return "This is not an absolute URL, such as https://example.com/page.";
  if (url.protocol !== "https:" && url.protocol !== "http:") return "The scheme must be http or https.";
  if (!/^https?:\/\//i.test(text)) return "Write the address with // after the scheme.";
  if (url.href.length > ENCODED_MAX)
    return `An address has at most ${ENCODED_MAX} characters when it is encoded.`;
  if (url.username || url.password) return "An address with a user name or password in it is not accepted.";
  // A dot at the end of a host name changes nothing (RFC 1034 §3.1).
  if (ownHosts.has(url.host.replace(/\.(?=:|$)/, ""))) return "A link may not lead back to this service.";
  return undefined;
}

/** Why a text cannot be a slug; nothing when it can. */
export function refuseSlug(slug: string, own: Own): string | undefined {
  if (!SLUG.test(slug)) return "A slug has 1 to 64 characters of A-Z, a-z, 0-9, - and _.";
  if (isReserved(slug, own)) return "This slug is reserved for the service itself.";
  return undefined;
}

/** Whether a word belongs to the service itself. */
export function isReserved(word: string, { ownWords }: Own): boolean {
  return RESERVED.has(word.toLowerCase()) || ownWords.has(word);
}

/** A random slug that nobody has to spell twice. */
export function randomSlug(): string {
  let number = randomInt(GENERATED);
  let slug = "";
  for (let place = 0; place < GENERATED_LENGTH; place++) {
    slug += ALPHABET[number % ALPHABET.length];
    number = Math.floor(number / ALPHABET.length);
  }
  return slug;
}
