import { entityTag } from "../http/etag.ts";
import type { ServiceResponse } from "../http/response.ts";
import { type BulkResult, toBulkResultView } from "./bulk.ts";
import { toView } from "./schema.ts";
import type { Link } from "./types.ts";

/** Builds the response that shows a link. */
export function linkResponse(link: Link, shortUrl: string): ServiceResponse {
  return { status: 200, headers: { ETag: entityTag(link.version) }, body: toView(link, shortUrl) };
}

/** Builds the response to the creation of a link. */
export function createdLink(link: Link, shortUrl: string): ServiceResponse {
  const { headers, body } = linkResponse(link, shortUrl);
  return { status: 201, headers: { Location: `/v1/links/${link.id}`, ...headers }, body };
}

/** Builds the response to a bulk request. */
export function bulkResults(results: BulkResult[], shortUrl: string): ServiceResponse {
  return { status: 200, body: { results: results.map((result) => toBulkResultView(result, shortUrl)) } };
}
