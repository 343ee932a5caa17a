import { isbot } from "isbot";
import type { Context } from "koa";
import type { Click } from "../ports.ts";

/** Where a click comes from, as far as its request tells. */
export type Visit = Omit<Click, "at">;

/** Reads the headers of whoever follows a link. */
export type ReadVisit = (ctx: Context) => Visit;

// A header that Cloudflare sets, and that other proxies can be told to.
const COUNTRY_HEADER = "cf-ipcountry";
// RFC 9110 §10.1.3; of the page only the host is kept. Another scheme is an app, whose name is no host.
const REFERRER = /^https?:\/\/([a-z0-9._-]{1,253})(?::\d+)?(?=[/?#]|$)/i;
// ISO 3166-1 alpha-2 leaves XX to its users; Cloudflare says so for a country that it does not know.
const COUNTRY = /^(?!XX)[A-Z]{2}$/;
// The pattern of all known bots takes longer than the rest of a redirect, and few user agents make most of the clicks.
const USER_AGENTS_MAX = 1000;

/** @param behindProxy whether a proxy of ours is in front: without one, visitors could write the country themselves */
export function createReadVisit(behindProxy: boolean): ReadVisit {
  const known = new Map<string, boolean>();

  function isBot(userAgent: string): boolean {
    const answer = known.get(userAgent) ?? isbot(userAgent);
    if (known.size >= USER_AGENTS_MAX) known.clear();
    known.set(userAgent, answer);
    return answer;
  }

  return ({ req: { headers } }) => {
    const country = headers[COUNTRY_HEADER];
    return {
      referrer: REFERRER.exec(headers.referer ?? "")?.[1]?.toLowerCase() ?? null,
      country: behindProxy && typeof country === "string" && COUNTRY.test(country) ? country : null,
      bot: isBot(headers["user-agent"] ?? ""),
    };
  };
}
