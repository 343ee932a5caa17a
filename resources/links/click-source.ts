import type { IncomingMessage } from "node:http";
import { isbot } from "isbot";
import { LRUCache } from "lru-cache";
import { getDomain } from "tldts";
import type { Click } from "./types.ts";

export type ClickSource = Omit<Click, "clickedAt">;

export type ReadClickSource = (request: Pick<IncomingMessage, "headers">) => ClickSource;

// Cloudflare sets this header, and other proxies can be configured to.
const COUNTRY_HEADER = "cf-ipcountry";
// RFC 9110 §10.1.3. Only the host is read. Other schemes name an app, which isn't a host.
const REFERRER = /^https?:\/\/([a-z0-9._-]{1,253})(?::\d+)?(?=[/?#]|$)/i;
// ISO 3166-1 alpha-2 leaves XX to users; Cloudflare sends it for an unknown country.
const COUNTRY = /^(?!XX)[A-Z]{2}$/;
// Matching all known bots takes longer than the rest of a redirect, and few user agents account for most clicks.
const USER_AGENTS_MAX = 1000;

/** @param behindProxy whether requests come through a trusted proxy; without one, visitors could set the country */
export function createReadClickSource(behindProxy: boolean): ReadClickSource {
  const bots = new LRUCache<string, boolean>({ max: USER_AGENTS_MAX, memoMethod: isbot });
  return ({ headers }) => {
    const country = headers[COUNTRY_HEADER];
    return {
      referrer: siteOf(headers.referer),
      country: behindProxy && typeof country === "string" && COUNTRY.test(country) ? country : null,
      bot: bots.memo(headers["user-agent"] ?? ""),
    };
  };
}

/** Other labels may be any text, which visitors could send to the people and agents that read the statistics. */
function siteOf(referrer = ""): string | null {
  const host = REFERRER.exec(referrer)?.[1]?.toLowerCase();
  if (!host) return null;
  return getDomain(host, { allowPrivateDomains: true }) ?? host;
}
