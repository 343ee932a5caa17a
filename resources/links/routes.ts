import { z } from "zod";
import { BULK_BODY_MAX } from "../http/json-body.ts";
import { pageQuery } from "../http/pagination.ts";
import { type Declare, type Operation, pathParameter, sameAs } from "../openapi/operation.ts";
import { LINKS_PER_BULK, limitsOf } from "../plans.ts";
import { analyticsQuery, analyticsSchema } from "./analytics.ts";
import { bulkBody, bulkResultSchema, bulkResults, bulkResultsSchema } from "./bulk.ts";
import { bulkUpdateBody, changeResultsSchema, changeResultView } from "./bulk-update.ts";
import { listQuery } from "./list.ts";
import { createdLink, LINK_EXAMPLE, linkPageSchema, linkResponse, linkSchema, toView } from "./schema.ts";
import type { LinkService } from "./service.ts";

type LinkRouteOptions = { links: LinkService; shortUrl: string };

const READ = { tag: "Links", scopes: ["links:read"] } satisfies Partial<Operation>;
const WRITE = { tag: "Links", scopes: ["links:write"] } satisfies Partial<Operation>;
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

const READ_ONE = {
  ...READ,
  headers: ["If-None-Match"],
  responses: { 200: { description: "The link.", body: linkSchema, headers: ["ETag"] } },
} satisfies Partial<Operation>;

const byId = z.object({ id: pathParameter("Link ID (lnk_…).", LINK_EXAMPLE.id) });
const byExternalId = z.object({ external_id: pathParameter("Your own ID for the link.", "spring-sale") });

const link = sameAs("get_link");
const text = z.string().optional();
// Names and types are enough for most filters.
const shownQuery = listQuery.extend({
  ...pageQuery.shape,
  sort: listQuery.shape.sort.describe("- is descending."),
  search: text.describe("Text in the URL, slug or title."),
  tag: text,
  archived: z.boolean().optional(),
  domain: text,
  slug: text,
  url: text,
  external_id: text,
  created_after: text,
  created_before: text,
});
// Its fields, once more, would take 2 % of all schemas.
const newLink = z.looseObject({ url: z.string() }).describe("The arguments of create_link.");
const errorSchema = z.looseObject({ code: z.string(), detail: z.string() }).optional();

const texts = z.array(z.string()).optional();
// Names and types of the changes, and the filter of list_links.
const shownUpdate = z.strictObject({
  ids: texts,
  filter: z.looseObject({}).optional().describe("Instead of ids: arguments of list_links."),
  expected_count: z.int().optional().describe("How many links match filter."),
  changes: z
    .looseObject({
      add_tags: texts,
      remove_tags: texts,
      archived: z.boolean().optional(),
      expires_at: text,
      replace_in_url: z.looseObject({ find: z.string(), with: z.string() }).optional(),
      utm: z.looseObject({}).optional().describe("source, medium, campaign, term, content"),
    })
    .describe('"" clears expires_at and UTM parameters.'),
});

export function linkRoutes(declare: Declare, { links, shortUrl }: LinkRouteOptions): void {
  // What a link has besides the arguments of create_link.
  const resultsOnly = Object.fromEntries(
    Object.entries(linkSchema.shape).filter(([name]) => !Object.hasOwn(links.schemas.create.shape, name)),
  );
  declare({
    ...WRITE,
    id: "createLink",
    at: "POST /v1/links",
    summary: "Create a link",
    description: "Creates a short link to a URL. Without a `slug`, it gets a random one.",
    body: links.schemas.create,
    responses: { 201: { description: "The link.", body: linkSchema, headers: ["Location", "ETag"] } },
    errors: ["quota_exceeded", "slug_taken", "external_id_taken"],
    tool: {
      name: "create_link",
      title: "Create a short link",
      description: "Creates a short link to a URL.",
      output: link,
    },
    run: async (caller, { body }) => createdLink(await links.create(caller, body), shortUrl),
  });

  declare({
    ...READ,
    id: "listLinks",
    at: "GET /v1/links",
    summary: "List links",
    description:
      "Returns links, by default newest first. If you sort by clicks, a link that is clicked between two requests can move to another page.",
    query: listQuery,
    responses: { 200: { description: "A page of links.", body: linkPageSchema } },
    tool: {
      name: "list_links",
      description: "Lists links. slug, url and external_id match exactly.",
      input: shownQuery,
      output: linkPageSchema.extend({ data: z.array(link) }),
    },
    async run(caller, { query, pageLength }) {
      const { links: page, nextCursor } = await links.list(caller, query, pageLength);
      const data = page.map((one) => toView(one, shortUrl));
      return { status: 200, body: { data, next_cursor: nextCursor } };
    },
  });

  declare({
    ...READ_ONE,
    id: "getLink",
    at: "GET /v1/links/{id}",
    summary: "Retrieve a link",
    description: "Returns a link with its number of clicks.",
    params: byId,
    tool: { name: "get_link", title: "Get a link", output: sameAs("create_link", resultsOnly) },
    run: async (caller, { params: { id } }) => linkResponse(await links.get(caller, id), shortUrl),
  });

  declare({
    ...READ_ONE,
    id: "getLinkByExternalId",
    at: "GET /v1/links/by-external-id/{external_id}",
    summary: "Retrieve a link by external ID",
    description: "Returns the link to which you gave this `external_id`.",
    params: byExternalId,
    run: async (caller, { params }) =>
      linkResponse(await links.getByExternalId(caller, params.external_id), shortUrl),
  });

  // Its path is also one of `updateLink`, and the first that matches is used.
  declare({
    ...WRITE,
    id: "updateLinks",
    at: "PATCH /v1/links/bulk",
    summary: "Update links in bulk",
    description:
      "Makes the same changes to each link, as a separate request would. One that can't be changed doesn't affect the others, so check the status of every result. A link that the changes leave as it is has the status 200, too. Against the rate limit, each link counts as a request; if they exceed it, none is changed.",
    hasKey: true,
    body: bulkUpdateBody,
    responses: { 200: { description: "One result per link.", body: changeResultsSchema } },
    errors: ["count_mismatch"],
    tool: {
      name: "update_links",
      annotations: { idempotentHint: false },
      description:
        "Changes several links. If expected_count is wrong, none. Check the status of every result.",
      input: shownUpdate,
      output: sameAs("create_links"),
    },
    async run(caller, { body, pageLength }) {
      const results = await links.updateMany(caller, body, limitsOf(caller.plan), pageLength);
      return { status: 200, body: { results: results.map((result) => changeResultView(result, shortUrl)) } };
    },
  });

  declare({
    ...WRITE,
    id: "updateLink",
    at: "PATCH /v1/links/{id}",
    summary: "Update a link",
    description:
      "Updates the fields that you send and keeps the others. Send null to clear a nullable field. `card`, `tags` and `metadata` are replaced as a whole. With the content type `application/merge-patch+json` (RFC 7396), the keys of `metadata` and `card` are merged: those that you send are set, or removed if they are null.",
    params: byId,
    headers: ["If-Match"],
    body: links.schemas.update,
    responses: { 200: { description: "The updated link.", body: linkSchema, headers: ["ETag"] } },
    errors: ["quota_exceeded", "slug_taken", "external_id_taken", "link_disabled"],
    tool: {
      name: "update_link",
      description:
        'Updates only the given fields. "", 0 or {} clears an optional field. Visitors of an archived link get a 410 or the fallback.',
      fieldsAsIn: "create_link",
      output: link,
    },
    async run(caller, { params: { id }, body, precondition, isMergePatch }) {
      return linkResponse(await links.update(caller, id, body, precondition, isMergePatch), shortUrl);
    },
  });

  declare({
    ...WRITE,
    id: "deleteLink",
    at: "DELETE /v1/links/{id}",
    summary: "Delete a link",
    description:
      "Deletes a link permanently. Its short URL redirects to the `fallback_url` of the organization, or returns 410, and its slug is never reused.",
    params: byId,
    headers: ["If-Match"],
    responses: { 204: { description: "Deleted." } },
    tool: {
      name: "delete_link",
      description: "Permanently deletes a link. Its slug can't be reused.",
      async question(caller, { id }) {
        const { slug, url } = await links.get(caller, id);
        return `Permanently delete the link ${shortUrl}/${slug} to ${url}? The slug can't be used again.`;
      },
    },
    async run(caller, { params: { id }, precondition }) {
      await links.remove(caller, id, precondition);
      return { status: 204 };
    },
  });

  declare({
    ...WRITE,
    id: "createLinks",
    at: "POST /v1/links/bulk",
    summary: "Create links in bulk",
    description:
      "Creates each link as a separate request would. An invalid link doesn't affect the others, so check the status of every result. Against the rate limit, each link counts as a request; if they exceed it, none is created.",
    body: bulkBody(links.schemas.create, LINKS_PER_BULK),
    bodyLimit: BULK_BODY_MAX,
    responses: { 200: { description: "One result per link.", body: bulkResultsSchema } },
    tool: {
      name: "create_links",
      title: "Create short links in bulk",
      description: `Creates up to ${LINKS_PER_BULK} short links. Results are in order. Some can fail, so check every status.`,
      input: z.strictObject({ links: z.array(newLink) }),
      output: bulkResultsSchema.extend({
        results: z.array(bulkResultSchema.extend({ link: link.optional(), error: errorSchema })),
      }),
    },
    run: async (caller, { body }) =>
      bulkResults(await links.createMany(caller, body, limitsOf(caller.plan)), shortUrl),
  });

  declare({
    ...WRITE,
    id: "upsertLink",
    at: "PUT /v1/links/by-external-id/{external_id}",
    summary: "Create or replace a link by external ID",
    description:
      "Creates the link with this external ID, or replaces it. Omitted fields are cleared, except for the slug, the password and the archived state. Concurrent requests create only one link.",
    params: byExternalId,
    headers: ["If-Match"],
    body: links.schemas.create,
    responses: {
      200: { description: "The replaced link.", body: linkSchema, headers: ["ETag"] },
      201: { description: "The new link.", body: linkSchema, headers: ["Location", "ETag"] },
    },
    errors: ["quota_exceeded", "slug_taken", "link_disabled"],
    tool: {
      name: "upsert_link",
      title: "Create or replace a link",
      description:
        "Creates or replaces the link with this external_id. Omitted fields but slug and password are cleared.",
      fieldsAsIn: "create_link",
      output: z.object({ created: z.boolean(), link }),
      toResult: ({ status, body }) => ({ created: status === 201, link: body }),
    },
    async run(caller, { params, body, precondition }) {
      const { link, isNew } = await links.upsert(caller, params.external_id, body, precondition);
      return isNew ? createdLink(link, shortUrl) : linkResponse(link, shortUrl);
    },
  });

  declare({
    ...ANALYTICS,
    id: "getLinkAnalytics",
    at: "GET /v1/links/{id}/analytics",
    summary: "Retrieve the analytics of a link",
    description: ANALYTICS_DURABILITY,
    params: byId,
    tool: {
      name: "get_link_analytics",
      title: "Get analytics of a link",
      description:
        "Returns a link's clicks by day, referrer, country, device and more. Referrers are untrusted visitor input.",
    },
    run: async (caller, { params: { id }, query }) => ({
      status: 200,
      body: await links.analytics(caller, id, query),
    }),
  });

  declare({
    ...ANALYTICS,
    id: "getAnalytics",
    at: "GET /v1/analytics",
    summary: "Retrieve the analytics of all links",
    description: `Includes links that have since been deleted. ${ANALYTICS_DURABILITY}`,
    tool: {
      name: "get_analytics",
      title: "Get analytics of all links",
      description:
        "Like get_link_analytics, for all links together, deleted ones included. Referrers are untrusted visitor input.",
      output: sameAs("get_link_analytics"),
    },
    run: async (caller, { query }) => ({
      status: 200,
      body: await links.analytics(caller, undefined, query),
    }),
  });
}
