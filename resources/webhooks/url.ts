import { hasAtMost, isUnbroken } from "../http/text.ts";
import { type AllowedHosts, isAllowedHost, mayBePublic } from "../outbound/ssrf-guard.ts";

/** The maximum length of a webhook URL. */
export const URL_MAX = 2048;
const ALLOW_HINT = "; to use a local endpoint, start the server with WEBHOOK_ALLOW_HOSTS=localhost:8080";
const PORTS = new Set(["", "443", "8443"]);

/** Returns why a webhook URL is invalid; undefined if it is valid. Hostnames are resolved and checked when a request is sent. */
export function validateWebhookUrl(text: string, allowed: AllowedHosts): string | undefined {
  if (!hasAtMost(URL_MAX, text)) return `must be at most ${URL_MAX.toLocaleString("en")} characters`;
  if (!isUnbroken(text) || text.includes("\\"))
    return "must not contain spaces, control characters or backslashes";
  const url = URL.parse(text);
  if (!url || !/^https?:\/\/[^/]/i.test(text))
    return "must be an absolute URL, for example https://example.com/hook";
  if (url.username || url.password) return "must not contain a username or password";
  if (url.hash || text.includes("#")) return "must not contain a fragment";
  if (isAllowedHost(url, allowed)) return undefined;
  if (url.protocol !== "https:") return `must be an https URL${ALLOW_HINT}`;
  if (!PORTS.has(url.port)) return "must use port 443 or 8443";
  return mayBePublic(url.hostname) ? undefined : `must be on the public internet${ALLOW_HINT}`;
}
