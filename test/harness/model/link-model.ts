import { isDeepStrictEqual } from "node:util";
import type { LinkBody } from "../clients/api.ts";

export type Input = Record<string, unknown>;
/** The expected state of a link. `view` is what the API should return. */
export type ModelLink = { view: LinkBody; version: number; isDeleted: boolean };
/** The expected response: an error with one of the codes, or a success if there are none. */
export type Expected = { status: number; codes?: string[] };
export type ExpectedVisit = { status: number; location?: string; isCounted?: boolean };
export type Match = "none" | "current" | "stale" | "weak" | "listed" | "any";
export type Filter = {
  search?: string;
  tag?: string;
  archived?: boolean;
  sort?: "created_at" | "-created_at" | "clicks" | "-clicks";
  url?: string;
  external_id?: string;
};

const DEFAULTS = {
  title: null,
  tags: [],
  external_id: null,
  metadata: {},
  archived: false,
  expires_at: null,
  max_clicks: null,
  redirect_type: 302,
  fallback_url: null,
  forward_query: true,
  forward_path: false,
  rules: [],
  card: null,
  has_password: false,
};
const STALE = '"999"';

/** An in-memory model of the links of one organization, to compare the API with. */
export class LinkModel {
  readonly links: ModelLink[] = [];

  at(index: number): ModelLink | undefined {
    return this.links[index % this.links.length];
  }

  existing(): ModelLink[] {
    return this.links.filter(({ isDeleted }) => !isDeleted);
  }

  byExternalId(externalId: string): ModelLink | undefined {
    return this.existing().find(({ view }) => view.external_id === externalId);
  }

  /** Expects a success unless other links conflict. A deleted link keeps its slug, but not its external id. */
  expectUnlessTaken(status: number, { slug, external_id }: Input, self?: ModelLink): Expected {
    const others = this.links.filter((link) => link !== self);
    const codes: string[] = [];
    if (slug !== undefined && others.some(({ view }) => view.slug === slug)) codes.push("slug_taken");
    const holder = typeof external_id === "string" && this.byExternalId(external_id);
    if (holder && holder !== self) codes.push("external_id_taken");
    return codes.length > 0 ? { status: 409, codes } : { status };
  }

  expectChange(link: ModelLink | undefined, input: Input, match: Match): Expected {
    if (!link || link.isDeleted) return { status: 404, codes: ["not_found"] };
    if (!holds(match)) return { status: 412, codes: ["precondition_failed"] };
    return this.expectUnlessTaken(200, input, link);
  }

  expectUpsert(externalId: string, input: Input, match: Match): Expected {
    const link = this.byExternalId(externalId);
    if (match !== "none" && !(link && holds(match))) return { status: 412, codes: ["precondition_failed"] };
    return this.expectUnlessTaken(link ? 200 : 201, { ...input, external_id: externalId }, link);
  }

  /** A deleted link has lost its fallback. */
  expectFollow(link: ModelLink | undefined): ExpectedVisit {
    if (!link) return { status: 404 };
    const { url, archived, max_clicks, clicks, bot_clicks, redirect_type, fallback_url } = link.view;
    const isSpent = max_clicks !== null && clicks + bot_clicks >= max_clicks;
    const isUnavailable = link.isDeleted || archived || isSpent;
    if (!isUnavailable) return { status: redirect_type, location: url, isCounted: true };
    return fallback_url === null || link.isDeleted
      ? { status: 410 }
      : { status: 302, location: fallback_url };
  }

  /** Adds a created link. Values that the service chooses come from the response. */
  create(input: Input, response: LinkBody, shortUrl: string): ModelLink {
    const { id, created_at, updated_at, created_by, created_via } = response;
    const slug = (input.slug as string | undefined) ?? response.slug;
    const view = {
      ...DEFAULTS,
      ...normalize(input),
      ...{ id, slug, created_at, updated_at, created_by, created_via },
      short_url: `${shortUrl}/${slug}`,
      domain: new URL(shortUrl).host,
      clicks: 0,
      bot_clicks: 0,
      last_clicked_at: null,
      disabled_at: null,
      disabled_reason: null,
    } as Input as LinkBody;
    const link = { view, version: 1, isDeleted: false };
    this.links.push(link);
    return link;
  }

  update(link: ModelLink, input: Input, response: LinkBody, shortUrl: string): void {
    const before = link.view;
    const after = { ...before, ...normalize(input) } as LinkBody;
    after.short_url = `${shortUrl}/${after.slug}`;
    if (isDeepStrictEqual(after, before)) return;
    link.version++;
    link.view = { ...after, updated_at: response.updated_at };
  }

  /** Replaces a link as PUT does. Omitted fields get their defaults, except the slug and the archived state. */
  replace(link: ModelLink, input: Input, response: LinkBody, shortUrl: string): void {
    const { archived, has_password, ...defaults } = DEFAULTS;
    const { external_id } = link.view;
    this.update(link, { ...defaults, external_id, ...input }, response, shortUrl);
  }

  /** Returns the matching links in their order: ids sort by creation time. */
  list({ search, tag, archived, sort = "-created_at", ...exact }: Filter): LinkBody[] {
    const direction = sort.startsWith("-") ? -1 : 1;
    const matches = (text: string | null) => text?.toLowerCase().includes((search ?? "").toLowerCase());
    return this.existing()
      .map(({ view }) => view)
      .filter(({ url, slug, title }) => search === undefined || [url, slug, title].some(matches))
      .filter((view) => tag === undefined || view.tags.includes(tag))
      .filter((view) => archived === undefined || view.archived === archived)
      .filter((view) => Object.entries(exact).every(([name, value]) => view[name as "url"] === value))
      .sort(
        (a, b) => direction * ((sort.endsWith("clicks") && a.clicks - b.clicks) || (a.id < b.id ? -1 : 1)),
      );
  }
}

export const tagOf = ({ version }: ModelLink): string => `"${version}"`;

export function matchHeader(match: Match, link: ModelLink | undefined): Record<string, string> {
  const current = link ? tagOf(link) : '"1"';
  const values = { current, stale: STALE, weak: `W/${current}`, listed: `${STALE}, ${current}`, any: "*" };
  return match === "none" ? {} : { "if-match": values[match] };
}

/** Returns whether the precondition is met. RFC 9110 §13.1.1: a weak tag never matches. */
const holds = (match: Match): boolean => match !== "stale" && match !== "weak";

function normalize(input: Input): Input {
  const { password, ...fields } = input;
  const { tags, expires_at } = fields as { tags?: string[]; expires_at?: string | null };
  return {
    ...fields,
    ...(password !== undefined && { has_password: password !== null }),
    ...(tags && { tags: [...new Set(tags)] }),
    ...(expires_at && { expires_at: new Date(expires_at).toISOString() }),
  };
}
