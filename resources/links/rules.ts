import { hash, randomInt } from "node:crypto";
import type { PublicUrls } from "../access/resource-metadata.ts";
import { hasAtMost, isUnbroken } from "../http/text.ts";

export const URL_MAX = 2048;
// A non-ASCII character takes up to nine in the Location header, and clients accept about 16 KB of headers.
const ENCODED_URL_MAX = 8192;
export const HOST_MAX = 253;
export const SEGMENTS_MAX = 8;
/** Segments of a path, such as `spring/sale`. */
export const SLUG = /^(?:[A-Za-z0-9_-]{1,64}\/){0,7}[A-Za-z0-9_-]{1,64}$/;
export const SLUG_MAX = 255;
export const SLUG_RULE = `must be up to ${SEGMENTS_MAX} segments, separated by /, of 1 to 64 characters from A-Z, a-z, 0-9, - and _, and at most ${SLUG_MAX} in all`;
// Leaves out characters that look alike, because people read slugs aloud.
const ALPHABET = "23456789abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ";
const RANDOM_SLUG_LENGTH = 7;
// 56^7 ≈ 1.7 · 10^12: collisions are rare even with a billion links.
const RANDOM_SLUGS = ALPHABET.length ** RANDOM_SLUG_LENGTH;

/** The first path segments of the service's own URLs, which can't be slugs in any letter case. */
const RESERVED = new Set(
  "v1 mcp oauth auth dashboard docs healthz readyz metrics assets interaction device api app admin login logout register \
signin signup static public help support status about terms privacy www".split(" "),
);

/**
 * The service's own hosts, where links could cause redirect loops; the one that has short links; and path segments, which
 * can't be slugs there.
 */
export type ReservedNames = {
  ownHosts: ReadonlySet<string>;
  shortHost: string;
  ownWords: ReadonlySet<string>;
};

/** Where the slugs of links are: on a domain of their organization. */
export type LinkDomain = {
  id: string;
  caseSensitive: boolean;
  /** When it was read for a request, which may read its link as of then. */
  asOf?: number | undefined;
};

/** Returns why a text isn't a valid destination URL, or `undefined` if it is. */
export function validateDestination(text: string, { ownHosts }: ReservedNames): string | undefined {
  if (!hasAtMost(URL_MAX, text)) return `must be at most ${URL_MAX} characters`;
  if (!isUnbroken(text)) return "must not contain spaces or control characters";
  const url = URL.parse(text);
  if (!url) return "must be an absolute URL, for example https://example.com/page";
  if (url.protocol !== "https:" && url.protocol !== "http:") return "must be an http or https URL";
  if (!/^https?:\/\//i.test(text)) return "must have // after the scheme";
  if (url.href.length > ENCODED_URL_MAX)
    return `must be at most ${ENCODED_URL_MAX} characters when percent-encoded`;
  if (url.username || url.password) return "must not contain a username or password";
  // RFC 1034 §3.1: a trailing dot names the same host.
  if (ownHosts.has(url.host.replace(/\.(?=:|$)/, ""))) return "must not point to this service";
  return undefined;
}

/** For what has no hosts and addresses of its own. */
export const NO_NAMES: ReservedNames = { ownHosts: new Set(), shortHost: "", ownWords: new Set() };

/** Returns a host in the form of a Host header: in lower case, and with A-labels (RFC 5890 §2.3.2.1). */
export function toHost(text: string): string {
  if (/[/?#@\\\s\p{Cc}]/u.test(text)) return text;
  return URL.parse(`https://${text}`)?.host.replace(/\.(?=:|$)/, "") ?? text;
}

/** What tells a slug of a domain from the same one of another domain, or of the server's own host. */
export function addressOf(slug: string, domain: LinkDomain | null | undefined): string {
  if (!domain) return slug;
  // No slug has a colon, so none of the server's own host begins with a domain.
  return `${domain.id}:${domain.caseSensitive ? slug : slug.toLowerCase()}`;
}

export function isSlug(text: string): boolean {
  return text.length <= SLUG_MAX && SLUG.test(text);
}

/** Only the first segment of a slug can be the service's own. */
export function isReserved(slug: string, { ownWords }: ReservedNames): boolean {
  const [segment = ""] = slug.split("/", 1);
  return RESERVED.has(segment.toLowerCase()) || ownWords.has(segment);
}

export function randomSlug(): string {
  return toSlug(randomInt(RANDOM_SLUGS));
}

/** Returns a slug that looks random, always the same one for a text. */
export function slugOf(text: string): string {
  return toSlug(hash("sha256", text, "buffer").readUIntBE(0, 6) % RANDOM_SLUGS);
}

function toSlug(given: number): string {
  let number = given;
  let slug = "";
  for (let position = 0; position < RANDOM_SLUG_LENGTH; position++) {
    slug += ALPHABET[number % ALPHABET.length];
    number = Math.floor(number / ALPHABET.length);
  }
  return slug;
}

/** Returns what belongs to the service on its own hosts. */
export function reservedNamesOf(urls: PublicUrls): ReservedNames {
  const [base, mcp, short] = [new URL(urls.base), new URL(urls.mcp), new URL(urls.short)];
  // Its path is configured, and on the host of short links it can't be a slug.
  const ownWords = mcp.host === short.host ? mcp.pathname.split("/").slice(1, 2) : [];
  return {
    ownHosts: new Set([base.host, mcp.host, short.host]),
    shortHost: short.host,
    ownWords: new Set(ownWords),
  };
}
