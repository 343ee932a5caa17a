import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import Bowser from "bowser";
import { isbot } from "isbot";
import type { Context, Next } from "koa";
import { LRUCache } from "lru-cache";
import { getDomain } from "tldts";
import { readBody } from "../http/json-body.ts";
import { Problem } from "../http/problem.ts";
import { DEVICES } from "./redirect-rules.ts";
import { shortUrlOf } from "./schema.ts";
import type { LinkService } from "./service.ts";
import type { Card, Click, ClickSource, ResolvedLink } from "./types.ts";
import { type LinkPreview, PASSWORD_REQUIRED, type Place, type Visit } from "./visits.ts";

// What follows the slug may be any path without dot segments (RFC 3986 §3.3).
const LINK_PATH = /^\/([A-Za-z0-9_-]{1,64})(?:$|\/(?!(?:.*\/)?\.{1,2}(?:\/|$)))/;
// RFC 3986 §2.2: an encoded + isn't the same as a plain one, but some programs encode it when they send a URL.
const PREVIEW_PATH = /^\/((?:[A-Za-z0-9_-]{1,64}\/){0,7}[A-Za-z0-9_-]{1,64})(?:\+|%2B)$/i;

// Redirects don't need these. Our referrer and opener policies would hide the referring page, which a link reveals.
const PAGE_HEADERS = [
  "X-Frame-Options",
  "Referrer-Policy",
  "Cross-Origin-Opener-Policy",
  "Content-Security-Policy",
];

/** Returns the ISO 3166-1 alpha-2 code of a visitor's country, if it is known. */
export type FindCountry = (request: IncomingMessage) => string | null;

/** Whose page a visitor sees: that of a domain, of the organization that has the link, or of the service's host. */
export type Site = { name: string; isDomain: boolean };

/** Renders what visitors see of links. */
export type LinkPages = {
  preview(preview: LinkPreview, site: Site): string;
  /** Shows a card to programs, and sends people who open the page to the destination. */
  card(card: { card: Card; shortUrl: string; location: string }): string;
  error(ctx: Context, detail: string, site: Site): string;
  /** Shows the form that asks for a password, and what was wrong with the last one. */
  askForPassword(ctx: Context, error: string | undefined, site: Site): void;
};

type Options = { findCountry: FindCountry | undefined; linkPages: LinkPages };

export function createRedirects(
  links: Pick<
    LinkService,
    "redirect" | "unlock" | "isProtected" | "readCard" | "preview" | "findOwnerName" | "isReserved"
  >,
  shortUrl: string,
  { findCountry, linkPages }: Options,
) {
  const { host } = new URL(shortUrl);
  const readClickSource = createReadClickSource(findCountry);

  /** Returns whether a path can be that of a link. On the server's own host, some are reserved. */
  function isAt(ctx: Context, pattern: RegExp): boolean {
    const slug = pattern.exec(ctx.path)?.[1];
    if (slug === undefined) return false;
    return ctx.state.domain !== undefined || (ctx.host === host && !links.isReserved(slug));
  }

  /** Resolves to whether the visitor is a program that shows previews, and got the card. */
  async function showCard(ctx: Context, link: ResolvedLink, location: string): Promise<boolean> {
    ctx.vary("User-Agent");
    if (!isPreviewProgram(userAgentOf(ctx.req))) return false;
    const card = await links.readCard(link);
    if (!card) return false;
    ctx.type = "html";
    ctx.body = linkPages.card({ card, shortUrl: shortUrlOf(link, shortUrl), location });
    return true;
  }

  function visitOf(ctx: Context): Visit {
    return {
      source: readClickSource(ctx.req),
      isCounted: ctx.method !== "HEAD",
      query: ctx.querystring,
      readLanguage: () => ctx.acceptsLanguages()[0],
    };
  }

  const placeOf = ({ path, state }: Context): Place => ({ path: path.slice(1), domain: state.domain });

  const pathOf = ({ path }: Context) => PREVIEW_PATH.exec(path)?.[1] ?? path.slice(1);

  /** Only pages need it. */
  async function siteOf(ctx: Context, hasLink = true): Promise<Site> {
    const { domain } = ctx.state;
    if (domain) return { name: domain.host, isDomain: true };
    const owner = hasLink ? await links.findOwnerName({ path: pathOf(ctx) }) : undefined;
    return { name: owner ?? host, isDomain: false };
  }

  return {
    isShortLink: (ctx: Context) => isAt(ctx, LINK_PATH),
    isPreview: (ctx: Context) => isAt(ctx, PREVIEW_PATH),

    /** Redirects a short link to its destination, or shows its card to programs that show previews. GET counts as a click, HEAD doesn't. */
    async followLink(ctx: Context): Promise<void> {
      const { status, location, vary, card } = await links.redirect(placeOf(ctx), visitOf(ctx));
      setHeaders(ctx);
      if (vary) ctx.vary(vary);
      if (card && (await showCard(ctx, card, location))) return;
      sendRedirect(ctx, status, location);
    },

    /** Redirects a visitor who entered the password of a link, which counts as a click. Other links have no POST. */
    async unlockLink(ctx: Context, next: Next): Promise<void> {
      if (ctx.method !== "POST" || !(await links.isProtected(placeOf(ctx)))) return next();
      const password = await readPassword(ctx);
      const { location } = await links.unlock(placeOf(ctx), password, ctx.ip, visitOf(ctx));
      setHeaders(ctx);
      // RFC 9110 §15.4.4: followed by a GET. A 307 or 308 would send the password to the destination.
      sendRedirect(ctx, 303, location);
    },

    /** Shows where a short link leads, without following it. */
    async showPreview(ctx: Context): Promise<void> {
      const preview = await links.preview({ path: pathOf(ctx), domain: ctx.state.domain });
      const site = await siteOf(ctx);
      ctx.set("Cache-Control", "no-store");
      ctx.set("X-Robots-Tag", "noindex");
      ctx.type = "html";
      ctx.body = linkPages.preview(preview, site);
    },

    /** Asks in browsers for the password that a link requires. Programs get the problem. */
    async askForPassword(ctx: Context, next: Next): Promise<void> {
      try {
        await next();
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== PASSWORD_REQUIRED) throw error;
        if (ctx.accepts("json", "html") !== "html") throw error;
        const isWrong = ctx.method === "POST";
        // RFC 9110 §15.5.2: a 401 needs a scheme of HTTP. Nothing has failed until a wrong password is entered.
        ctx.status = isWrong ? error.status : 200;
        ctx.set("Cache-Control", "private, no-store");
        ctx.set("X-Robots-Tag", "noindex");
        ctx.vary("Accept");
        linkPages.askForPassword(ctx, isWrong ? error.message : undefined, await siteOf(ctx));
      }
    },

    /** Replaces the errors of short links with pages in browsers. */
    async showErrorPage(ctx: Context, next: Next): Promise<void> {
      await next();
      // A page that asks for a password is one already.
      if (ctx.status < 400 || ctx.type === "text/html") return;
      // RFC 9110 §15.5.5 and §15.5.11: a 404 and a 410 are cacheable, but a link may be created or restored.
      ctx.set("Cache-Control", "no-store");
      ctx.vary("Accept");
      if (ctx.accepts("json", "html") === "html") {
        const { detail } = ctx.body as { detail: string };
        ctx.body = linkPages.error(ctx, detail, await siteOf(ctx, ctx.status !== 404 && ctx.status < 500));
        ctx.type = "html";
      }
    },
  };
}

function setHeaders(ctx: Context): void {
  ctx._matchedRoute = "/:slug";
  // A permanent redirect cached by a browser would no longer be counted, and couldn't be changed.
  ctx.set("Cache-Control", "private, no-store");
  ctx.set("X-Robots-Tag", "noindex");
}

function sendRedirect(ctx: Context, status: number, location: string): void {
  ctx.status = status;
  for (const name of PAGE_HEADERS) ctx.remove(name);
  ctx.set("Location", location);
  ctx.body = "";
  ctx.remove("Content-Type");
}

// A password of 128 characters has up to 1,536 bytes, because each byte of UTF-8 is encoded as three.
const FORM_MAX = 4 * 1024;

/**
 * Reads the form of the page. It has no CSRF token: at worst, another site counts a wrong password for the address of its
 * visitor, and the password is asked for each time, so there is no session to misuse. @throws Problem 400, 413 or 415
 */
async function readPassword(ctx: Context): Promise<string> {
  if (!ctx.is("urlencoded"))
    throw new Problem(415, "unsupported_media_type", "Send a form (application/x-www-form-urlencoded).");
  const form = new URLSearchParams((await readBody(ctx.req, FORM_MAX)).toString());
  return form.get("password") ?? "";
}

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
// Browsers send about 150 characters.
const USER_AGENT_LENGTH = 512;

/** Creates the function that reads what a request says about a click. Only known names of browsers, systems and devices are kept. */
export function createReadClickSource(findCountry: FindCountry | undefined) {
  const agents = new LRUCache<string, Agent>({ max: USER_AGENTS_MAX, memoMethod: readAgent });
  return (request: IncomingMessage): ClickSource => {
    const { headers } = request;
    const agent = agents.memo(userAgentOf(request));
    return {
      ...agent,
      bot: agent.bot || isInAdvance(headers),
      referrer: siteOf(headers.referer),
      country: findCountry?.(request) ?? null,
    };
  };
}

function userAgentOf({ headers }: IncomingMessage): string {
  return (headers["user-agent"] ?? "").slice(0, USER_AGENT_LENGTH);
}

/** Returns whether a browser loads what its user may never open. */
function isInAdvance(headers: IncomingHttpHeaders): boolean {
  return PURPOSE_HEADERS.some((name) => IN_ADVANCE.test(String(headers[name] ?? "")));
}

const BROWSERS = new Set(Object.values(Bowser.BROWSER_MAP));
const OPERATING_SYSTEMS = new Set(Object.values(Bowser.OS_MAP));

/** Bowser also returns names that it doesn't know, and visitors can send any text. */
function readAgent(userAgent: string): Agent {
  const bot = isbot(userAgent) || isPreviewProgram(userAgent);
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

// Names of programs that fetch a link to show it in a chat, a post or a document, in lower case. Search engines, archives
// and AI crawlers aren't among them. iMessage sends the names of Facebook and X.
const NAMES =
  `facebookexternalhit, facebot, twitterbot, linkedinbot, pinterestbot, redditbot, discordbot, telegrambot, \
slackbot-linkexpanding, skypeuripreview, microsoftpreview, mattermost-bot, mastodon/, bluesky cardyb, summalybot, lemmy/, \
vkshare, odklbot, line-poker, kakaotalk-scrap, snap url preview service, google-pagerenderer, synapse (bot, beeperbot, \
developers.google.com/+/web/snippet, zulipurlpreview, chatwork linkpreview, yahoo link preview, iframely, embedly, \
nextcloud-server-crawler, nextcloud server crawler`.split(", ");
// The browsers in these apps have the name further on. Signal sends that of WhatsApp.
const FIRST_NAMES = ["whatsapp", "viber", "pinterest/", "notion"];

/** Returns whether a user agent is that of a program that shows previews of links. */
export function isPreviewProgram(userAgent: string): boolean {
  const text = userAgent.toLowerCase();
  return FIRST_NAMES.some((name) => text.startsWith(name)) || NAMES.some((name) => text.includes(name));
}
