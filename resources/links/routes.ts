import type { Context } from "koa";
import { z } from "zod";
import { give } from "../answer.ts";
import type { Caller } from "../bearer.ts";
import type { Declare } from "../openapi/operation.ts";
import { LINKS_PER_BULK, limitsOf } from "../plans.ts";
import type { Link } from "../ports.ts";
import { Problem } from "../problem.ts";
import { analyticsQuery, analyticsSchema } from "./analytics.ts";
import { madeLink, madeLinks, shownLink } from "./answers.ts";
import { bulkBody, outcomesSchema } from "./bulk.ts";
import { entityTag, isKnown, preconditionOf } from "./entity-tag.ts";
import { type Links, listQuery } from "./links.ts";
import { LINK_EXAMPLE, linkPageSchema, linkSchema, toView } from "./schema.ts";

type RestOptions = { links: Links; shortUrl: string };

const KEPT_APART =
  "Stored apart from the number of clicks of a link: a server that is killed may lose those of its last 2 seconds.";

const byId = z.object({
  id: z
    .string()
    .describe("The id of the link.")
    .meta({ examples: [LINK_EXAMPLE.id] }),
});

/** The REST face of links: declares its operations. */
export function linkRoutes(declare: Declare, { links, shortUrl }: RestOptions): void {
  const show = (ctx: Context, link: Link) => give(ctx, shownLink(link, shortUrl));

  declare({
    id: "createLink",
    method: "post",
    path: "/v1/links",
    tag: "Links",
    summary: "Create a link",
    scopes: ["links:write"],
    body: links.schemas.create,
    answers: { 201: { description: "The link.", body: linkSchema, headers: ["Location", "ETag"] } },
    refusals: ["slug_taken", "external_id_taken"],
    async handler(ctx) {
      give(ctx, madeLink(await links.create(callerOf(ctx), ctx.request.body), shortUrl));
    },
  });

  declare({
    id: "listLinks",
    method: "get",
    path: "/v1/links",
    tag: "Links",
    summary: "List links",
    description: "Newest first.",
    scopes: ["links:read"],
    query: listQuery,
    answers: { 200: { description: "A page of links.", body: linkPageSchema } },
    async handler(ctx) {
      const { links: page, nextCursor } = await links.list(callerOf(ctx), ctx.state.query);
      ctx.body = { data: page.map((link) => toView(link, shortUrl)), next_cursor: nextCursor };
    },
  });

  declare({
    id: "getLink",
    method: "get",
    path: "/v1/links/{id}",
    tag: "Links",
    summary: "Show a link",
    scopes: ["links:read"],
    params: byId,
    headers: ["If-None-Match"],
    answers: {
      200: { description: "The link.", body: linkSchema, headers: ["ETag"] },
      304: { description: "It is as the ETag says.", headers: ["ETag"] },
    },
    refusals: ["not_found"],
    async handler(ctx) {
      const link = await links.get(callerOf(ctx), ctx.params.id as string);
      show(ctx, link);
      if (isKnown(ctx, entityTag(link.version))) ctx.status = 304;
    },
  });

  declare({
    id: "updateLink",
    method: "patch",
    path: "/v1/links/{id}",
    tag: "Links",
    summary: "Change a link",
    description:
      "Changes the fields that are sent and leaves the others; null empties a field that may be empty.",
    scopes: ["links:write"],
    params: byId,
    headers: ["If-Match"],
    body: links.schemas.update,
    answers: { 200: { description: "The link as it is now.", body: linkSchema, headers: ["ETag"] } },
    refusals: ["not_found", "slug_taken", "external_id_taken", "precondition_failed"],
    async handler(ctx) {
      const { id } = ctx.params as { id: string };
      show(ctx, await links.update(callerOf(ctx), id, ctx.request.body, preconditionOf(ctx)));
    },
  });

  declare({
    id: "deleteLink",
    method: "delete",
    path: "/v1/links/{id}",
    tag: "Links",
    summary: "Delete a link",
    description: "For good: its short address answers 410, and its slug is not used again.",
    scopes: ["links:write"],
    params: byId,
    headers: ["If-Match"],
    answers: { 204: { description: "It is deleted." } },
    refusals: ["not_found", "precondition_failed"],
    async handler(ctx) {
      await links.remove(callerOf(ctx), ctx.params.id as string, preconditionOf(ctx));
      ctx.status = 204;
    },
  });

  declare({
    id: "createLinks",
    method: "post",
    path: "/v1/links/bulk",
    tag: "Links",
    summary: "Create many links",
    description:
      "Each link gets the answer that it would have got alone, in order; one that is refused does not stop the others.",
    scopes: ["links:write"],
    body: bulkBody(links.schemas.create, LINKS_PER_BULK),
    answers: { 200: { description: "What became of each.", body: outcomesSchema } },
    async handler(ctx) {
      const caller = callerOf(ctx);
      const outcomes = await links.createMany(caller, ctx.request.body, limitsOf(caller.plan));
      give(ctx, madeLinks(outcomes, shortUrl));
    },
  });

  declare({
    id: "upsertLink",
    method: "put",
    path: "/v1/links/by-external-id/{external_id}",
    tag: "Links",
    summary: "Create or change a link by your own id",
    description:
      "Makes the link with this external id, or gives the one that has it these fields. However many do it at once, there is one link. A slug that is not sent stays as it is.",
    scopes: ["links:write"],
    params: z.object({
      external_id: z
        .string()
        .describe("Your own id of the link, percent-encoded.")
        .meta({ examples: ["spring-sale"] }),
    }),
    headers: ["If-Match"],
    body: links.schemas.create,
    answers: {
      200: { description: "The link as it is now.", body: linkSchema, headers: ["ETag"] },
      201: { description: "The link, which is new.", body: linkSchema, headers: ["Location", "ETag"] },
    },
    refusals: ["slug_taken", "precondition_failed"],
    async handler(ctx) {
      const precondition = preconditionOf(ctx, () => true);
      const { body } = ctx.request;
      const { link, isNew } = await links.upsert(callerOf(ctx), externalIdOf(ctx), body, precondition);
      give(ctx, isNew ? madeLink(link, shortUrl) : shownLink(link, shortUrl));
    },
  });

  declare({
    id: "getLinkAnalytics",
    method: "get",
    path: "/v1/links/{id}/analytics",
    tag: "Analytics",
    summary: "Show where the clicks of a link come from",
    description: KEPT_APART,
    scopes: ["links:read"],
    params: byId,
    query: analyticsQuery,
    answers: { 200: { description: "Clicks by day, referrer and country.", body: analyticsSchema } },
    refusals: ["not_found"],
    async handler(ctx) {
      ctx.body = await links.analytics(callerOf(ctx), ctx.params.id as string, ctx.state.query);
    },
  });

  declare({
    id: "getAnalytics",
    method: "get",
    path: "/v1/analytics",
    tag: "Analytics",
    summary: "Show where the clicks of all links come from",
    description: `Those of links that were deleted since are among them. ${KEPT_APART}`,
    scopes: ["links:read"],
    query: analyticsQuery,
    answers: { 200: { description: "Clicks by day, referrer and country.", body: analyticsSchema } },
    async handler(ctx) {
      ctx.body = await links.analytics(callerOf(ctx), undefined, ctx.state.query);
    },
  });
}

function callerOf(ctx: Context): Caller {
  return ctx.state.caller;
}

/** The last segment, decoded. The router leaves one as it is that cannot be: two ids would be the same address. */
function externalIdOf(ctx: Context): string {
  try {
    return decodeURIComponent(ctx.path.slice(ctx.path.lastIndexOf("/") + 1));
  } catch {
    const message = "This must be percent-encoded UTF-8.";
    throw new Problem(422, "invalid_external_id", message, { errors: [{ field: "external_id", message }] });
  }
}
