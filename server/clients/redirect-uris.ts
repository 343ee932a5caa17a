import { isIP } from "node:net";
import { EDITOR_REDIRECT_URIS } from "./known-redirect-uris.ts";

const MAX_URIS = 20;
const MAX_LENGTH = 2048;
/** The hosts of redirect URIs on the user's own computer. */
export const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);
const LOOPBACK_ROOT = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

/**
 * Returns what is wrong with a list of redirect URIs: the index and the rule for each invalid one. Accepted are https
 * on a domain other than loopback, http on loopback (any port, RFC 8252 §7.3), and private-use schemes (RFC 8252 §7.1).
 */
export function validateRedirectUris(uris: string[]): { index: number; message: string }[] {
  if (uris.length > MAX_URIS) {
    return [{ index: MAX_URIS, message: `must be one of at most ${MAX_URIS} redirect URIs` }];
  }
  return uris.flatMap((uri, index) => {
    const isDuplicate = uris.indexOf(uri) < index;
    const message = isDuplicate ? "must not be a duplicate" : validateRedirectUri(uri);
    return message ? [{ index, message }] : [];
  });
}

function validateRedirectUri(uri: string): string | undefined {
  if (uri.length > MAX_LENGTH) return `must be at most ${MAX_LENGTH} characters`;
  if (/[^!-~]|\\/.test(uri)) return "must be ASCII without spaces or backslashes";
  const url = URL.parse(uri);
  if (!url) return "must be an absolute URI"; // RFC 6749 §3.1.2
  if (uri.includes("#")) return "must not contain a fragment"; // RFC 6749 §3.1.2
  if (url.username || url.password) return "must not contain a username or password";
  if (uri.includes("*")) return "must not contain wildcards; redirect URIs are compared exactly";
  const scheme = url.protocol.slice(0, -1);
  const isLoopback = LOOPBACK.has(url.hostname);
  if (scheme === "https") {
    if (isLoopback) return "must use http on loopback";
    return isIpAddress(url) ? "must use a domain name instead of an IP address" : undefined;
  }
  if (scheme === "http") {
    return isLoopback ? undefined : "must use https, except on localhost, 127.0.0.1 and [::1]";
  }
  // RFC 8252 §7.1 and §8.4: a scheme without a dot belongs to no domain, and operating systems give some of them a meaning.
  if (scheme.includes(".") || EDITOR_REDIRECT_URIS.includes(uri)) return undefined;
  return `must not use the ${scheme} scheme; private-use schemes contain a dot, such as com.example.app`;
}

function isIpAddress({ hostname }: URL): boolean {
  return hostname.startsWith("[") || isIP(hostname) !== 0;
}

/**
 * Returns who receives what is sent to a redirect URI: a host, or the scheme of an app. What follows a private-use scheme
 * is for that app to interpret, so it could look like any host.
 */
export function redirectTargetOf(uri: string): { name: string; isLocal: boolean } {
  const { protocol, host, hostname } = new URL(uri);
  const isWeb = protocol === "https:" || protocol === "http:";
  return { name: isWeb ? host : protocol.slice(0, -1), isLocal: isWeb && LOOPBACK.has(hostname) };
}

/**
 * Adds the slash to a loopback URI without a path, which names the same resource (RFC 9110 §4.2.3). Native apps build the
 * URI with URL parsers, which add it, or by hand. All other URIs are compared exactly.
 */
export function canonicalRedirectUri<T>(uri: T): T | string {
  return typeof uri === "string" && LOOPBACK_ROOT.test(uri) ? `${uri}/` : uri;
}
