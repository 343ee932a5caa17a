import { z } from "zod";
import { type ApiContext, idOf, respond } from "../http/api-context.ts";
import { entityTag, matchesIfNoneMatch, preconditionOf } from "../http/etag.ts";
import { BULK_BODY_MAX, isJson, MERGE_PATCH } from "../http/json-body.ts";
import { found } from "../http/problem.ts";
import { invalidField } from "../http/validate.ts";
import type { Declare, Operation } from "../openapi/operation.ts";
import { LINKS_PER_BULK, limitsOf } from "../plans.ts";
import { analyticsQuery, analyticsSchema } from "./analytics.ts";
import { bulkBody, bulkResults, bulkResultsSchema } from "./bulk.ts";
import { listQuery } from "./list.ts";
import { createdLink, LINK_EXAMPLE, linkPageSchema, linkResponse, linkSchema, toView } from "./schema.ts";
import type { LinkService } from "./service.ts";
import type { Link } from "./types.ts";

type RestOptions = { links: LinkService; shortUrl: string };

const READS = { tag: "Links", scopes: ["links:read"] } satisfies Partial<Operation>;
const WRITES = { tag: "Links", scopes: ["links:write"] } satisfies Partial<Operation>;
const ANALYTICS = {
  tag: "Analytics",
  scopes: ["links:read"],
  query: analyticsQuery,
  responses: {
    200: {
      description: "Clicks by day, referrer, country, device, browser and operating system.",
      body: analyticsSchema,
    },
  },
} satisfies Partial<Operation>;
const ANALYTICS_DURABILITY =
  "Analytics are stored separately from the `clicks` of a link. If a server is killed, those of its last 2 seconds may be lost.";

const byExternalId = z.object({
  external_id: z
    .string()
    .describe("Your own ID for the link, percent-encoded.")
    .meta({ examples: ["spring-sale"] }),
});
const READS_ONE = {
  ...READS,
  headers: ["If-None-Match"],
  responses: {
    200: { description: "The link.", body: linkSchema, headers: ["ETag"] },
    304: { description: "The link still has the ETag that you sent.", headers: ["ETag"] },
  },
  errors: ["not_found"],
} satisfies Partial<Operation>;

const byId = z.object({
  id: z
    .string()
    .describe("The ID of the link.")
    .meta({ examples: [LINK_EXAMPLE.id] }),
});

export function linkRoutes(declare: Declare, { links, shortUrl }: RestOptions): void {
  function showLink(ctx: ApiContext, link: Link): void {
    respond(ctx, linkResponse(link, shortUrl));
    if (matchesIfNoneMatch(ctx, entityTag(link.version))) ctx.status = 304;
  }

  declare({
    ...WRITES,
    id: "createLink",
    method: "post",
    path: "/v1/links",
    summary: "Create a link",
    description: "Creates a short link to a URL. Without a `slug`, it gets a random one.",
    body: links.schemas.create,
    responses: { 201: { description: "The link.", body: linkSchema, headers: ["Location", "ETag"] } },
    errors: ["quota_exceeded", "slug_taken", "external_id_taken"],
    async handler(ctx) {
      respond(ctx, createdLink(await links.create(ctx.state.caller, ctx.request.body), shortUrl));
    },
  });

  declare({
    ...READS,
    id: "listLinks",
    method: "get",
    path: "/v1/links",
    summary: "List links",
    description:
      "Returns links, by default newest first. If you sort by clicks, a link that is clicked between two requests can move to another page.",
    query: listQuery,
    responses: { 200: { description: "A page of links.", body: linkPageSchema } },
    async handler(ctx) {
      const { links: page, nextCursor } = await links.list(ctx.state.caller, ctx.state.query);
      ctx.body = { data: page.map((link) => toView(link, shortUrl)), next_cursor: nextCursor };
    },
  });

  declare({
    ...READS_ONE,
    id: "getLink",
    method: "get",
    path: "/v1/links/{id}",
    summary: "Retrieve a link",
    description: "Returns the link with its number of clicks.",
    params: byId,
    handler: async (ctx) => showLink(ctx, await links.get(ctx.state.caller, idOf(ctx))),
  });

  declare({
    ...READS_ONE,
    id: "getLinkByExternalId",
    method: "get",
    path: "/v1/links/by-external-id/{external_id}",
    summary: "Retrieve a link by external ID",
    description: "Returns the link to which you gave this `external_id`.",
    params: byExternalId,
    handler: async (ctx) =>
      showLink(ctx, await links.getByExternalId(ctx.state.caller, found(externalIdOf(ctx), "link"))),
  });

  declare({
    ...WRITES,
    id: "updateLink",
    method: "patch",
    path: "/v1/links/{id}",
    summary: "Update a link",
    description:
      "Updates the fields that you send and keeps the others. Send null to clear a nullable field. `tags` and `metadata` are replaced as a whole. With the content type `application/merge-patch+json` (RFC 7396), the keys of `metadata` are merged: those that you send are set, or removed if they are null.",
    params: byId,
    headers: ["If-Match"],
    body: links.schemas.update,
    responses: { 200: { description: "The updated link.", body: linkSchema, headers: ["ETag"] } },
    errors: [
      "quota_exceeded",
      "not_found",
      "slug_taken",
      "external_id_taken",
      "link_disabled",
      "precondition_failed",
    ],
    async handler(ctx) {
      const { body } = ctx.request;
      const isMerge = isJson(ctx.get("content-type"), MERGE_PATCH);
      const link = await links.update(ctx.state.caller, idOf(ctx), body, preconditionOf(ctx), isMerge);
      respond(ctx, linkResponse(link, shortUrl));
    },
  });

  declare({
    ...WRITES,
    id: "deleteLink",
    method: "delete",
    path: "/v1/links/{id}",
    summary: "Delete a link",
    description:
      "Deletes a link permanently. Its short URL redirects to the `fallback_url` of the organization, or returns 410, and its slug is never reused.",
    params: byId,
    headers: ["If-Match"],
    responses: { 204: { description: "Deleted." } },
    errors: ["not_found", "precondition_failed"],
    async handler(ctx) {
      await links.remove(ctx.state.caller, idOf(ctx), preconditionOf(ctx));
      ctx.status = 204;
    },
  });

  declare({
    ...WRITES,
    id: "createLinks",
    method: "post",
    path: "/v1/links/bulk",
    summary: "Create links in bulk",
    description:
      "Creates each link as a separate request would. An invalid link doesn't affect the others, so check the status of every result. Against the rate limit, each link counts as a request; if they exceed it, none is created.",
    body: bulkBody(links.schemas.create, LINKS_PER_BULK),
    bodyLimit: BULK_BODY_MAX,
    responses: { 200: { description: "One result per link.", body: bulkResultsSchema } },
    async handler(ctx) {
      const caller = ctx.state.caller;
      const results = await links.createMany(caller, ctx.request.body, limitsOf(caller.plan));
      respond(ctx, bulkResults(results, shortUrl));
    },
  });

  declare({
    ...WRITES,
    id: "upsertLink",
    method: "put",
    path: "/v1/links/by-external-id/{external_id}",
    summary: "Create or replace a link by external ID",
    description:
      "Creates the link with this external ID, or replaces it. Omitted fields are cleared, but an omitted slug is kept, and so is the archived state. Concurrent requests create only one link.",
    params: byExternalId,
    headers: ["If-Match"],
    body: links.schemas.create,
    responses: {
      200: { description: "The replaced link.", body: linkSchema, headers: ["ETag"] },
      201: { description: "The new link.", body: linkSchema, headers: ["Location", "ETag"] },
    },
    errors: ["quota_exceeded", "slug_taken", "link_disabled", "precondition_failed"],
    async handler(ctx) {
      const precondition = preconditionOf(ctx, () => true);
      const { body } = ctx.request;
      const externalId = externalIdOf(ctx);
      if (externalId === undefined) throw invalidField("external_id", "must be percent-encoded UTF-8");
      const { link, isNew } = await links.upsert(ctx.state.caller, externalId, body, precondition);
      respond(ctx, isNew ? createdLink(link, shortUrl) : linkResponse(link, shortUrl));
    },
  });

  declare({
    ...ANALYTICS,
    id: "getLinkAnalytics",
    method: "get",
    path: "/v1/links/{id}/analytics",
    summary: "Retrieve the analytics of a link",
    description: ANALYTICS_DURABILITY,
    params: byId,
    errors: ["not_found"],
    async handler(ctx) {
      ctx.body = await links.analytics(ctx.state.caller, idOf(ctx), ctx.state.query);
    },
  });

  declare({
    ...ANALYTICS,
    id: "getAnalytics",
    method: "get",
    path: "/v1/analytics",
    summary: "Retrieve the analytics of all links",
    description: `Includes links that have since been deleted. ${ANALYTICS_DURABILITY}`,
    async handler(ctx) {
      ctx.body = await links.analytics(ctx.state.caller, undefined, ctx.state.query);
    },
  });
}

/** Decodes the last path segment: the router keeps one that it can't decode, so two ids would share one URL. */
function externalIdOf(ctx: ApiContext): string | undefined {
  try {
    return decodeURIComponent(ctx.path.slice(ctx.path.lastIndexOf("/") + 1));
  } catch {
    return undefined;
  }
}
