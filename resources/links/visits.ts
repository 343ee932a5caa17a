import { found, notFound, Problem } from "../http/problem.ts";
import { hasAtMost } from "../http/text.ts";
import { withForwardedPath, withForwardedQuery } from "./forwarding.ts";
import { destinationOf, type Visitor, varyOf } from "./redirect-rules.ts";
import { addressOf, isReserved, isSlug, type LinkDomain, type ReservedNames, SEGMENTS_MAX } from "./rules.ts";
import { PASSWORD_MAX } from "./schema.ts";
import type {
  Card,
  Click,
  ClickSource,
  Link,
  LinkPasswords,
  LinkStore,
  RedirectType,
  ResolvedLink,
} from "./types.ts";
import { utmOf } from "./utm.js";

// A URL that the URL parser would return unchanged. Most destinations match, and needn't be parsed for each redirect.
const NORMALIZED_URL = /^https?:\/\/[a-z0-9.-]+\/[A-Za-z0-9\-_~!$&()*+,;=:@%/?.]*$/;

// Of parameters that visitors can add, statistics keep as much.
const UTM_LENGTH = 100;

export const PASSWORD_REQUIRED = "password_required";
const UNAVAILABLE = "The link has expired or was removed by its owner.";

export type Redirect = {
  status: RedirectType;
  location: string;
  /** The link, if it has a card. */
  card: ResolvedLink | undefined;
  /** What the location depends on but the URL, as the value of `Vary`; empty for most links. */
  vary: string;
};

/** Where a link is looked for: a path without the slash in front, on the server's own host or on that of a domain. */
export type Place = { path: string; domain?: LinkDomain | undefined };

export type Visit = Pick<Visitor, "query" | "readLanguage"> & { source: ClickSource; isCounted: boolean };

/** What visitors may know about a link: where it leads, its title, and when it was created; or that it has a password. */
export type LinkPreview =
  | Pick<Link, "slug" | "url" | "title" | "createdAt" | "rules">
  | { slug: string; hasPassword: true };

/** What visitors of short links do. */
export function createVisits(store: LinkStore, passwords: LinkPasswords, reserved: ReservedNames) {
  const resolveAt = ({ path, domain }: Place) => store.resolve(addressOf(path, domain), domain?.asOf);

  /** Finds the link of a path, or that with the longest slug of those that forward the rest of it. */
  async function findByPath({
    path,
    domain,
  }: Place): Promise<{ link: ResolvedLink; rest: string } | undefined> {
    const slug = path.endsWith("/") ? path.slice(0, -1) : path;
    const exact = isSlug(slug) ? await resolveAt({ path: slug, domain }) : undefined;
    if (exact) return { link: exact, rest: "" };
    const segments = path.split("/", SEGMENTS_MAX + 1);
    const slugs = segments.map((_, index) => segments.slice(0, index).join("/")).filter(isSlug);
    const links = await Promise.all(slugs.map((one) => resolveAt({ path: one, domain })));
    const link = links.findLast((one) => one?.forwardPath && !one.isDeleted);
    return link && { link, rest: path.slice(link.slug.length + 1) };
  }

  async function resolvePath(place: Place) {
    const resolved = await findByPath(place);
    if (!resolved) throw notFound("link");
    assertNotDisabled(resolved.link);
    return resolved;
  }

  /**
   * Resolves the path of a short link to its redirect, and counts a click. The redirect of an unavailable link is to its
   * fallback, and isn't counted.
   * @throws Problem 403 if the link has a password, 404 or 410
   */
  async function redirect(place: Place, visit: Visit): Promise<Redirect> {
    const { link, rest } = await resolvePath(place);
    if (link.hasPassword && isActive(link, Date.now()))
      throw new Problem(403, PASSWORD_REQUIRED, "The link is protected by a password.");
    return follow(link, rest, visit);
  }

  /**
   * As `redirect`, for a visitor who entered a password. A fallback needs none.
   * @throws Problem 403 if it is wrong, 404, 410, 429 or 503
   */
  async function unlock(place: Place, password: string, address: string, visit: Visit): Promise<Redirect> {
    const { link, rest } = await resolvePath(place);
    if (isActive(link, Date.now()) && !(await isUnlockedBy(password, link.id, address)))
      throw new Problem(403, PASSWORD_REQUIRED, "The password is wrong.");
    return follow(link, rest, visit);
  }

  async function isUnlockedBy(password: string, linkId: string, address: string): Promise<boolean> {
    const hash = await store.findPasswordHash(linkId);
    if (hash === null) return true;
    // What no password can be isn't worth an attempt.
    if (password === "" || !hasAtMost(PASSWORD_MAX, password)) return false;
    return passwords.verify(hash, password, { linkId, address });
  }

  async function follow(link: ResolvedLink, rest: string, visit: Visit): Promise<Redirect> {
    const clickedAt = Date.now();
    const chosen = chooseDestination(link, visit, clickedAt);
    const location = addToDestination(chosen, rest, link, visit.query);
    const { rules, hasCard, redirectType: status } = link;
    const destination = rules.length > 0 ? chosen : null;
    const click = () => ({ ...visit.source, clickedAt, destination, ...utmParametersOf(location) });
    const isFollowed = isActive(link, clickedAt) && (!visit.isCounted || (await store.click(link, click())));
    const card = hasCard ? link : undefined;
    if (isFollowed) return { status, location, card, vary: rules.length > 0 ? varyOf(rules) : "" };
    const fallback = (await store.findOwner(link.id))?.fallbackUrl;
    if (!fallback) throw gone(UNAVAILABLE);
    return { status: 302, location: toLocation(fallback), card: undefined, vary: "" };
  }

  /** Resolves to the card of a link, or null if it has none. Counts nothing. */
  async function readCard({ organizationId, id }: ResolvedLink): Promise<Card | null> {
    const link = await store.find(organizationId, id);
    return link?.card ?? null;
  }

  /** Resolves to what visitors may know about the link with a slug. Never redirects, and counts nothing. */
  async function preview(place: Place): Promise<LinkPreview> {
    const resolved = assertNotDisabled(found(await resolveAt(place), "link"));
    const { slug } = resolved;
    const isFound = isActive(resolved, Date.now());
    if (isFound && resolved.hasPassword) return { slug, hasPassword: true };
    const link = isFound ? await store.find(resolved.organizationId, resolved.id) : undefined;
    if (!link) throw gone(UNAVAILABLE);
    const { title, createdAt } = link;
    const rules = link.rules.map((rule) => ({ ...rule, url: toLocation(rule.url) }));
    return { slug, url: toLocation(link.url), title, createdAt, rules };
  }

  return {
    redirect,
    readCard,
    unlock,
    /** Returns whether a path is that of a link with a password. */
    async isProtected(place: Place): Promise<boolean> {
      return (await findByPath(place))?.link.hasPassword === true;
    },
    preview,
    /** Resolves to the name of the organization that has the link of a path. */
    async findOwnerName(place: Place): Promise<string | undefined> {
      const resolved = await findByPath(place);
      return resolved && (await store.findOwner(resolved.link.id))?.name;
    },
    isReserved: (slug: string) => isReserved(slug, reserved),
  };
}

function gone(detail: string): Problem {
  return new Problem(410, "link_gone", detail);
}

function assertNotDisabled(link: ResolvedLink): ResolvedLink {
  if (link.isDisabled && !link.isDeleted) throw gone("The link has been disabled.");
  return link;
}

/** Returns where a visitor goes, without what the visitor adds. */
function chooseDestination({ url, rules }: ResolvedLink, visit: Visit, now: number): string {
  if (rules.length === 0) return toLocation(url);
  return toLocation(destinationOf(rules, { ...visit.source, ...visit }, now) ?? url);
}

/** @throws Problem 404 for a path that could leave that of the destination */
function addToDestination(destination: string, rest: string, { forwardQuery }: ResolvedLink, query: string) {
  const location = rest === "" ? destination : found(withForwardedPath(destination, rest), "link");
  return forwardQuery && query !== "" ? withForwardedQuery(location, query) : location;
}

const NO_UTM = { utmSource: null, utmMedium: null, utmCampaign: null };

/** Returns the UTM parameters that are counted, of the URL that a visitor is sent to. */
export function utmParametersOf(location: string): Pick<Click, keyof typeof NO_UTM> {
  if (!location.includes("utm_")) return NO_UTM;
  const { utm_source, utm_medium, utm_campaign } = utmOf(location);
  const nameOf = (value: string) => value.slice(0, UTM_LENGTH).toWellFormed().replaceAll("\0", "") || null;
  return { utmSource: nameOf(utm_source), utmMedium: nameOf(utm_medium), utmCampaign: nameOf(utm_campaign) };
}

/** Links keep a URL as it was sent, but a header holds only ASCII. */
function toLocation(url: string): string {
  return NORMALIZED_URL.test(url) ? url : new URL(url).href;
}

function isActive(link: ResolvedLink, now: number): boolean {
  const { isDeleted, archived, expiresAt, clicks, botClicks, maxClicks } = link;
  const hasClicksLeft = clicks + botClicks < (maxClicks ?? Infinity);
  return !isDeleted && !archived && (expiresAt ?? Infinity) > now && hasClicksLeft;
}
