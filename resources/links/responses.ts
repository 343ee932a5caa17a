import type { Answer } from "../answer.ts";
import type { Link } from "../ports.ts";
import { type Outcome, toOutcomeView } from "./bulk.ts";
import { entityTag } from "./entity-tag.ts";
import { toView } from "./schema.ts";

/** A link as it is now. */
export function shownLink(link: Link, shortUrl: string): Answer {
  return { status: 200, headers: { ETag: entityTag(link.version) }, body: toView(link, shortUrl) };
}

/** A link that was not there before. */
export function madeLink(link: Link, shortUrl: string): Answer {
  const { headers, body } = shownLink(link, shortUrl);
  return { status: 201, headers: { Location: `/v1/links/${link.id}`, ...headers }, body };
}

/** What became of each of many. */
export function madeLinks(outcomes: Outcome[], shortUrl: string): Answer {
  return { status: 200, body: { results: outcomes.map((outcome) => toOutcomeView(outcome, shortUrl)) } };
}
