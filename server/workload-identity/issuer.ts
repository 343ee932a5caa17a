import { isUnbroken } from "../../resources/http/text.ts";
import { type AllowedHosts, isAllowedHost, mayBePublic } from "../../resources/outbound/ssrf-guard.ts";

const ISSUER_MAX = 255;

type Hosts = {
  /** Hosts that may be private. */
  fetchable: AllowedHosts;
  /** Hosts that may use http. */
  plain: AllowedHosts;
};

/**
 * Returns why a URL can't be the issuer of a trust rule; undefined if it can. Its metadata is fetched by the same rules,
 * so what could never be fetched is refused here.
 */
export function validateIssuer(text: string, { fetchable, plain }: Hosts): string | undefined {
  if (text.length > ISSUER_MAX) return `must be at most ${ISSUER_MAX} characters`;
  const url = URL.parse(text);
  if (!url || !isUnbroken(text) || text.includes("\\") || !/^https?:\/\/[^/]/.test(text))
    return "must be an https URL, exactly as in the iss claim of the tokens";
  if (url.username || url.password) return "must not contain a username or password";
  // RFC 8414 §2
  if (text.includes("?") || text.includes("#")) return "must not contain a query or a fragment";
  if (url.protocol === "http:" && !isAllowedHost(url, plain)) return "must be an https URL";
  if (isAllowedHost(url, fetchable)) return undefined;
  if (url.port) return "must use port 443";
  return mayBePublic(url.hostname)
    ? undefined
    : "must be on the public internet: its keys are fetched from there";
}
