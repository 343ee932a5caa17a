import { isDeepStrictEqual } from "node:util";
import type { LinkBody } from "./api.ts";

/** What a caller sends about a link. */
export type Input = Record<string, unknown>;
/** A link as it should be. `clicks` and all else in `view` are what the API should show. */
export type ModelLink = { view: LinkBody; version: number; isDeleted: boolean };
/** An answer as it should be: a refusal by one of the codes, or none. */
export type Expected = { status: number; codes?: string[] };
/** How a caller uses `If-Match`. */
export type Match = "none" | "current" | "stale" | "weak" | "listed" | "any";
export type Filter = { search?: string; tag?: string; archived?: boolean };

const DEFAULTS = {
  title: null,
  tags: [],
  external_id: null,
  metadata: {},
  archived: false,
  expires_at: null,
  max_clicks: null,
  redirect_type: 302,
};
const STALE = '"999"';

/** The links of one organization, in memory: what the API is held against. */
export class LinkModel {
  /** All that were ever made, deleted ones included. */
  readonly links: ModelLink[] = [];

  /** One of those that were ever made; nothing when there is none. */
  at(place: number): ModelLink | undefined {
    return this.links[place % this.links.length];
  }

  live(): ModelLink[] {
    return this.links.filter(({ isDeleted }) => !isDeleted);
  }

  byExternalId(externalId: string): ModelLink | undefined {
    return this.live().find(({ view }) => view.external_id === externalId);
  }

  /** What of a link somebody else has. A deleted link keeps its slug, and nothing else. */
  taken({ slug, external_id }: Input, own?: ModelLink): string[] {
    const others = this.links.filter((link) => link !== own);
    const codes: string[] = [];
    if (slug !== undefined && others.some(({ view }) => view.slug === slug)) codes.push("slug_taken");
    const holder = typeof external_id === "string" && this.byExternalId(external_id);
    if (holder && holder !== own) codes.push("external_id_taken");
    return codes;
  }

  expectCreate(input: Input, fault?: string): Expected {
    if (fault) return { status: 422, codes: [fault] };
    const codes = this.taken(input);
    return codes.length > 0 ? { status: 409, codes } : { status: 201 };
  }

  expectChange(link: ModelLink | undefined, input: Input, match: Match, fault?: string): Expected {
    if (fault) return { status: 422, codes: [fault] };
    if (!link || link.isDeleted) return { status: 404, codes: ["not_found"] };
    if (!holds(match)) return { status: 412, codes: ["precondition_failed"] };
    const codes = this.taken(input, link);
    return codes.length > 0 ? { status: 409, codes } : { status: 200 };
  }

  expectUpsert(externalId: string, input: Input, match: Match, fault?: string): Expected {
    if (fault) return { status: 422, codes: [fault] };
    const link = this.byExternalId(externalId);
    if (match !== "none" && !(link && holds(match))) return { status: 412, codes: ["precondition_failed"] };
    const codes = this.taken({ ...input, external_id: externalId }, link);
    if (codes.length > 0) return { status: 409, codes };
    return { status: link ? 200 : 201 };
  }

  expectFollow(link: ModelLink | undefined): Expected {
    if (!link) return { status: 404 };
    const { archived, max_clicks, clicks, redirect_type } = link.view;
    const isOver = link.isDeleted || archived || (max_clicks !== null && clicks >= max_clicks);
    return { status: isOver ? 410 : redirect_type };
  }

  /** Takes a new link over; what only the service can know comes from its answer. */
  made(input: Input, answer: LinkBody, shortUrl: string): ModelLink {
    const { id, created_at, updated_at, created_by } = answer;
    const slug = (input.slug as string | undefined) ?? answer.slug;
    const view = {
      ...DEFAULTS,
      ...normal(input),
      ...{ id, slug, created_at, updated_at, created_by },
      short_url: `${shortUrl}/${slug}`,
      clicks: 0,
      last_clicked_at: null,
    } as Input as LinkBody;
    const link = { view, version: 1, isDeleted: false };
    this.links.push(link);
    return link;
  }

  /** Changes a link; what it has already is no change. */
  changed(link: ModelLink, input: Input, answer: LinkBody, shortUrl: string): void {
    const before = link.view;
    const after = { ...before, ...normal(input) } as LinkBody;
    after.short_url = `${shortUrl}/${after.slug}`;
    if (isDeepStrictEqual(after, before)) return;
    link.version++;
    link.view = { ...after, updated_at: answer.updated_at };
  }

  /** Gives a link all that a PUT does not name, but for its slug and whether it is archived. */
  replaced(link: ModelLink, input: Input, answer: LinkBody, shortUrl: string): void {
    const { archived, ...defaults } = DEFAULTS;
    const { external_id } = link.view;
    this.changed(link, { ...defaults, external_id, ...input }, answer, shortUrl);
  }

  followed(link: ModelLink): void {
    link.view.clicks++;
  }

  /** The newest first: ids sort by their age. */
  list({ search, tag, archived }: Filter): LinkBody[] {
    const has = (text: string | null) => text?.toLowerCase().includes((search ?? "").toLowerCase());
    return this.live()
      .map(({ view }) => view)
      .filter((view) => search === undefined || has(view.url) || has(view.slug) || has(view.title))
      .filter((view) => tag === undefined || view.tags.includes(tag))
      .filter((view) => archived === undefined || view.archived === archived)
      .sort((a, b) => (a.id < b.id ? 1 : -1));
  }
}

/** The entity tag of a link. */
export function tagOf({ version }: ModelLink): string {
  return `"${version}"`;
}

/** The header of a precondition. */
export function matchHeader(match: Match, link: ModelLink | undefined): Record<string, string> {
  const current = link ? tagOf(link) : '"1"';
  const values = {
    current,
    stale: STALE,
    weak: `W/${current}`,
    listed: `${STALE}, ${current}`,
    any: "*",
  };
  return match === "none" ? {} : { "if-match": values[match] };
}

/** RFC 9110 §13.1.1: a weak tag never matches. */
function holds(match: Match): boolean {
  return match !== "stale" && match !== "weak";
}

/** Input as it is shown again. */
function normal(input: Input): Input {
  const { tags, expires_at } = input as { tags?: string[]; expires_at?: string | null };
  return {
    ...input,
    ...(tags && { tags: [...new Set(tags)] }),
    ...(expires_at && { expires_at: new Date(expires_at).toISOString() }),
  };
}
