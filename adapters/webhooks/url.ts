import { sha256 } from "../crypto/hash.ts";

/** Returns the hash by which a URL is unique in an organization. It doesn't depend on the encryption key, which may change. */
export function urlHashOf(organizationId: string, url: string): string {
  return sha256(`${organizationId} ${URL.parse(url)?.href ?? url}`);
}

/** Returns the hostname of a URL. */
export function hostOf(url: string): string {
  return URL.parse(url)?.hostname ?? "";
}

/** Returns a URL for the audit log: without its path and query, which some services use as a password. */
export function redactUrl(url: string): string {
  const parsed = URL.parse(url);
  if (!parsed || (parsed.pathname === "/" && !parsed.search)) return url;
  return `${parsed.origin}/…`;
}
