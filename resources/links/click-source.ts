import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import Bowser from "bowser";
import { isbot } from "isbot";
import { LRUCache } from "lru-cache";
import { getDomain } from "tldts";
import { type Click, DEVICES } from "./types.ts";

export type ClickSource = Omit<Click, "clickedAt">;

export type ReadClickSource = (request: IncomingMessage) => ClickSource;

/** Returns the ISO 3166-1 alpha-2 code of a visitor's country, if it is known. */
export type FindCountry = (request: IncomingMessage) => string | null;

type Agent = Pick<Click, "device" | "browser" | "operatingSystem" | "bot">;

// RFC 9110 §10.1.3. Only the host is read.
const REFERRER = /^https?:\/\/([a-z0-9._-]{1,253})(?::\d+)?(?=[/?#]|$)/i;
// Android's apps send their package name, which begins with a domain in reverse order.
const APP_REFERRER = /^android-app:\/\/([a-z0-9_.]{1,253})(?=[/?#]|$)/i;
// Fetch Metadata has the first one; Chrome, Safari and Firefox sent the others before.
const PURPOSE_HEADERS = ["sec-purpose", "purpose", "x-purpose", "x-moz"];
const IN_ADVANCE = /\b(?:prefetch|prerender|preview)\b/i;
// Reading a user agent takes longer than the rest of a redirect, and few of them account for most clicks.
const USER_AGENTS_MAX = 1000;
// Those of browsers have about 150 characters.
const USER_AGENT_LENGTH = 512;

export function createReadClickSource(findCountry: FindCountry): ReadClickSource {
  const agents = new LRUCache<string, Agent>({ max: USER_AGENTS_MAX, memoMethod: readAgent });
  return (request) => {
    const { headers } = request;
    const agent = agents.memo((headers["user-agent"] ?? "").slice(0, USER_AGENT_LENGTH));
    return {
      ...agent,
      bot: agent.bot || isInAdvance(headers),
      referrer: siteOf(headers.referer),
      country: findCountry(request),
    };
  };
}

/** Returns whether a browser loads what its user may never open. */
function isInAdvance(headers: IncomingHttpHeaders): boolean {
  return PURPOSE_HEADERS.some((name) => IN_ADVANCE.test(String(headers[name] ?? "")));
}

const BROWSERS = new Set(Object.values(Bowser.BROWSER_MAP));
const OPERATING_SYSTEMS = new Set(Object.values(Bowser.OS_MAP));

/** Bowser also returns names that it doesn't know, and visitors can send any text. */
function readAgent(userAgent: string): Agent {
  const bot = isbot(userAgent);
  if (userAgent === "") return { device: null, browser: null, operatingSystem: null, bot };
  const { platform, browser, os } = Bowser.parse(userAgent);
  return {
    device: DEVICES.find((device) => device === platform.type) ?? null,
    browser: knownOf(BROWSERS, browser.name),
    operatingSystem: knownOf(OPERATING_SYSTEMS, os.name),
    bot,
  };
}

function knownOf(names: Set<string>, name: string | undefined): string | null {
  return name !== undefined && names.has(name) ? name : null;
}

/** Other labels may be any text, which visitors could send to the people and agents that read the statistics. */
function siteOf(referrer = ""): string | null {
  const host = REFERRER.exec(referrer)?.[1]?.toLowerCase();
  if (host) return getDomain(host, { allowPrivateDomains: true }) ?? host;
  const app = APP_REFERRER.exec(referrer)?.[1]?.toLowerCase();
  return app ? getDomain(app.split(".").reverse().join(".")) : null;
}
