import { sha256 } from "../crypto/hash.ts";

/**
 * Returns the hash by which a URL is unique in an organization. It depends on neither the encryption key, which may change,
 * nor a dot after the hostname.
 */
export function urlHashOf(organizationId: string, url: string): string {
  return sha256(`${organizationId} ${parse(url)?.href ?? url}`);
}

/** Returns the hostname of a URL, without a dot after it. */
export function hostOf(url: string): string {
  return parse(url)?.hostname ?? "";
}

/** Parses a URL. `example.com.` is the same host as `example.com` (RFC 1034 §3.1). */
function parse(url: string): URL | null {
  const parsed = URL.parse(url);
  if (parsed?.hostname.endsWith(".")) parsed.hostname = parsed.hostname.slice(0, -1);
  return parsed;
}

/** Returns a URL for the audit log: without its path and query, which some services use as a password. */
export function redactUrl(url: string): string {
  const parsed = URL.parse(url);
  if (!parsed || (parsed.pathname === "/" && !parsed.search)) return url;
  return `${parsed.origin}/…`;
}
