import { isIP } from "node:net";
import { LOOPBACK } from "../settings/setting-types.ts";

/** Where Cursor and Visual Studio Code receive codes when they register themselves. */
export const EDITOR_REDIRECT_URIS = [
  "https://www.cursor.com/agents/mcp/oauth/callback",
  "cursor://anysphere.cursor-mcp/oauth/callback",
  "cursor://anysphere.cursor-retrieval/oauth/callback",
  "https://insiders.vscode.dev/redirect",
];

const MAX_URIS = 20;
const MAX_LENGTH = 2048;
const LOOPBACK_ROOT = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

/** https, except loopback; http on loopback with any port (RFC 8252 §7.3); private-use schemes (RFC 8252 §7.1). */
export function validateRedirectUris(uris: string[]): { index: number; message: string }[] {
  if (uris.length > MAX_URIS)
    return [{ index: MAX_URIS, message: `must be one of at most ${MAX_URIS} redirect URIs` }];
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
  if (scheme === "http")
    return isLoopback ? undefined : "must use https, except on localhost, 127.0.0.1 and [::1]";
  // RFC 8252 §7.1 and §8.4: a scheme without a dot belongs to no domain, and operating systems give some of them a meaning.
  if (scheme.includes(".") || EDITOR_REDIRECT_URIS.includes(uri)) return undefined;
  return `must not use the ${scheme} scheme; private-use schemes contain a dot, such as com.example.app`;
}

function isIpAddress({ hostname }: URL): boolean {
  return hostname.startsWith("[") || isIP(hostname) !== 0;
}

/** What follows a private-use scheme is for its app to interpret, so it could look like any host. */
export function redirectTargetOf(uri: string): { name: string; isLocal: boolean } {
  const { protocol, host, hostname } = new URL(uri);
  const isWeb = protocol === "https:" || protocol === "http:";
  return { name: isWeb ? host : protocol.slice(0, -1), isLocal: isWeb && LOOPBACK.has(hostname) };
}

/** RFC 9110 §4.2.3: native apps build loopback URIs with URL parsers, which add the slash, or by hand. */
export function canonicalRedirectUri<T>(uri: T): T | string {
  return typeof uri === "string" && LOOPBACK_ROOT.test(uri) ? `${uri}/` : uri;
}
