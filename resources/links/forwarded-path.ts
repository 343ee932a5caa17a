import { escapeByte } from "./forwarded-query.ts";

const PATH_MAX = 2048;
// What a path may have (RFC 3986 §3.3).
const UNSAFE = /%(?![\dA-F]{2})|[^\w\-.~!$&'()*+,;=:@/%]/gi;
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
  return base + rest.replace(UNSAFE, escapeByte) + others;
}

/** An empty segment is only allowed at the end, but that of `a//b` is one that some servers remove. */
function staysBelow(segment: string, index: number, segments: string[]): boolean {
  if (segment === "") return index === segments.length - 1;
  let decoded = segment;
  for (let count = 0; count < DECODINGS; count++) {
    const [name = ""] = decoded.split(";", 1); // some read `..;a` as `..` with a parameter
    if (/^\.{1,2}$/.test(name) || /[/\\\p{Cc}]/u.test(decoded)) return false;
    try {
      decoded = decodeURIComponent(decoded);
    } catch {
      return false;
    }
  }
  return !decoded.includes("%25");
}
