import { tryTo } from "../try-to.ts";

// A longer destination is sent without the visitor's query: clients accept about 16 KB of headers.
const LOCATION_MAX = 8192;
// What a query may have (RFC 3986 §3.4), without `;`, which some programs read as `&`.
const UNSAFE_IN_QUERY = /%(?![\dA-F]{2})|[^\w\-.~!$'()*+,:@/?%=[\]]/gi;

/**
 * Appends what a visitor added to a short URL to its destination. Parameters that the destination has are left out, so no
 * visitor changes what its owner set. @param location a normalized URL @param query as it was sent, without `?`
 */
export function withForwardedQuery(location: string, query: string): string {
  if (location.length + query.length > LOCATION_MAX) return location;
  const [, address = "", own, fragment = ""] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/.exec(location) ?? [];
  const taken = new Set(
    [own, own?.replaceAll(";", "&")].flatMap((text) => parametersOf(text).flatMap(readings)),
  );
  const added = parametersOf(query).filter((parameter) =>
    readings(parameter).every((name) => !taken.has(name)),
  );
  if (added.length === 0) return location;
  const parameters = [
    ...(own ? [own] : []),
    ...added.map(({ text }) => text.replace(UNSAFE_IN_QUERY, escapeByte)),
  ];
  const forwarded = `${address}?${parameters.join("&")}${fragment}`;
  return forwarded.length > LOCATION_MAX ? location : forwarded;
}

type Parameter = { name: string; text: string };

function parametersOf(query = ""): Parameter[] {
  const names = [...new URLSearchParams(`&${query}`).keys()]; // which would drop a question mark in front
  const texts = query.split("&").filter(Boolean);
  return texts.map((text, index) => ({ text, name: names[index] ?? "" }));
}

/**
 * Returns what programs take a parameter's name for. ASP.NET ignores case, and PHP reads ` a`, `a[b]` and `a%00` as `a`,
 * and `a.b` and `a[b` as `a_b`.
 */
function readings({ name }: Parameter): string[] {
  const [visible = ""] = name.trimStart().toLowerCase().split("\0", 1);
  return [visible.split("[", 1)[0] as string, visible].map((one) => one.replace(/[. [\]]/g, "_"));
}

const PATH_MAX = 2048;
// What a path may have (RFC 3986 §3.3).
const UNSAFE_IN_PATH = /%(?![\dA-F]{2})|[^\w\-.~!$&'()*+,;=:@/%]/gi;
// Servers may decode more than once.
const DECODINGS = 4;

/**
 * Appends what a visitor added to the path of a short URL to that of its destination. Returns undefined if a server could
 * leave the path of the destination for it. @param location a normalized URL @param rest without a slash in front
 */
export function withForwardedPath(location: string, rest: string): string | undefined {
  if (rest.length > PATH_MAX || !rest.split("/").every(staysBelow)) return undefined;
  const [address = ""] = location.split(/[?#]/, 1);
  const others = location.slice(address.length);
  const base = address.endsWith("/") ? address : `${address}/`;
  return base + rest.replace(UNSAFE_IN_PATH, escapeByte) + others;
}

/** An empty segment is only allowed at the end, but that of `a//b` is one that some servers remove. */
function staysBelow(segment: string, index: number, segments: string[]): boolean {
  if (segment === "") return index === segments.length - 1;
  let decoded = segment;
  for (let count = 0; count < DECODINGS; count++) {
    const [name = ""] = decoded.split(";", 1); // some read `..;a` as `..` with a parameter
    if (/^\.{1,2}$/.test(name) || /[/\\\p{Cc}]/u.test(decoded)) return false;
    const next = tryTo(() => decodeURIComponent(decoded));
    if (next === undefined) return false;
    decoded = next;
  }
  return !decoded.includes("%25");
}

/** Node reads the target of a request as Latin-1. */
function escapeByte(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}
