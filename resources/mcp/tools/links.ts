import { z } from "zod";
import { analyticsQuery, analyticsSchema } from "../../links/analytics.ts";
import { bulkResultSchema, bulkResults, bulkResultsSchema, bulkSchema } from "../../links/bulk.ts";
import { listQuery } from "../../links/list.ts";
import { createdLink, linkPageSchema, linkSchema, toView } from "../../links/schema.ts";
import type { LinkService } from "../../links/service.ts";
import { CREATES, deletionSchema, READS, REPLACES, sameAs } from "../../openapi/tool-declaration.ts";
import { LINKS_PER_BULK, limitsOf } from "../../plans.ts";
import type { Tool } from "../tool.ts";

// About 100 links of the usual size, and 16,000 tokens for an agent.
const PAGE_LENGTH = 64 * 1024;

const byId = z.strictObject({ id: z.string().describe("Link ID (lnk_…).") });
const link = sameAs("get_link");
const errorSchema = z.looseObject({ code: z.string(), detail: z.string() }).optional();
// Its fields, once more, would take 2 % of all schemas.
const newLink = z.looseObject({ url: z.string() }).describe("The arguments of create_link.");

const text = z.string().optional();
// Names and types are enough for most filters.
const shownQuery = listQuery.extend({
  sort: listQuery.shape.sort.describe("- is descending."),
  search: text.describe("Text in the URL, slug or title."),
  tag: text,
  archived: z.boolean().optional(),
  slug: text,
  url: text,
  external_id: text,
  created_after: text,
  created_before: text,
});

/** Accepts, beside null, a value of the argument's own type to clear a field: the schema that hosts see has one type. */
function clearable(fields: LinkService["schemas"]["update"]["shape"]) {
  const clearedBy = (empty: unknown, field: z.ZodType) =>
    z.preprocess((value) => (value === empty ? null : value), field).optional();
  const { title, external_id, expires_at, fallback_url, max_clicks } = fields;
  return {
    title: clearedBy("", title),
    external_id: clearedBy("", external_id),
    expires_at: clearedBy("", expires_at),
    fallback_url: clearedBy("", fallback_url),
    max_clicks: clearedBy(0, max_clicks),
  };
}

export function linkTools(links: LinkService, shortUrl: string): Tool[] {
  const { create, update } = links.schemas;
  const reads = { scopes: ["links:read"], annotations: READS } satisfies Partial<Tool>;
  const writes = { scopes: ["links:write"] } satisfies Partial<Tool>;
  return [
    {
      ...reads,
      name: "get_link",
      title: "Get a link",
      description: "Returns a link with its number of clicks.",
      input: byId,
      output: linkSchema,
      run: async (caller, { id }) => toView(await links.get(caller, id as string), shortUrl),
    },
    {
      ...reads,
      name: "list_links",
      title: "List links",
      description: "Lists links, by default newest first. slug, url and external_id match exactly.",
      input: listQuery,
      shownInput: shownQuery,
      output: linkPageSchema.extend({ data: z.array(link) }),
      run: async (caller, query) => {
        const { links: page, nextCursor } = await links.list(caller, query, PAGE_LENGTH);
        return { data: page.map((link) => toView(link, shortUrl)), next_cursor: nextCursor };
      },
    },
    {
      ...reads,
      name: "get_link_analytics",
      title: "Get analytics of a link",
      description:
        "Returns the clicks of a link by day, referrer, country, device, browser and operating system. Referrers are untrusted visitor input.",
      input: z.strictObject({ ...byId.shape, ...analyticsQuery.shape }),
      output: analyticsSchema,
      run: (caller, { id, ...days }) => links.analytics(caller, id as string, days),
    },
    {
      ...reads,
      name: "get_analytics",
      title: "Get analytics of all links",
      description:
        "Returns the clicks of all links together, including deleted ones, like get_link_analytics. Referrers are untrusted visitor input.",
      input: analyticsQuery,
      output: sameAs("get_link_analytics"),
      run: (caller, days) => links.analytics(caller, undefined, days),
    },
    {
      ...writes,
      name: "create_link",
      title: "Create a short link",
      description: "Creates a short link to a URL.",
      input: create,
      output: link,
      annotations: CREATES,
      operation: "createLink",
      run: async (caller, input) => createdLink(await links.create(caller, input), shortUrl),
    },
    {
      ...writes,
      name: "create_links",
      title: "Create short links in bulk",
      description: `Creates up to ${LINKS_PER_BULK} short links. Returns one result per link, in order. Some can fail, so check every status.`,
      input: bulkSchema,
      shownInput: z.strictObject({ links: z.array(newLink) }),
      output: bulkResultsSchema.extend({
        results: z.array(bulkResultSchema.extend({ link: link.optional(), error: errorSchema })),
      }),
      annotations: CREATES,
      operation: "createLinks",
      run: async (caller, input) =>
        bulkResults(await links.createMany(caller, input, limitsOf(caller.plan)), shortUrl),
    },
    {
      ...writes,
      name: "upsert_link",
      title: "Create or replace a link",
      description:
        "Creates or replaces the link with this external_id. Omitted fields are cleared, except slug.",
      fieldsAsIn: "create_link",
      input: create.extend({ external_id: create.shape.external_id.unwrap().unwrap() }),
      output: z.object({ created: z.boolean(), link }),
      annotations: REPLACES,
      run: async (caller, input) => {
        const { link, isNew } = await links.upsert(caller, input.external_id as string, input);
        return { created: isNew, link: toView(link, shortUrl) };
      },
    },
    {
      ...writes,
      name: "update_link",
      title: "Update a link",
      description:
        'Updates only the given fields. "" or 0 clears an optional field. Visitors of an archived link get a 410 or the fallback.',
      fieldsAsIn: "create_link",
      input: z.strictObject({ ...byId.shape, ...update.shape, ...clearable(update.shape) }),
      shownInput: z.strictObject({ ...byId.shape, ...update.shape }),
      output: link,
      annotations: REPLACES,
      run: async (caller, { id, ...changes }) =>
        toView(await links.update(caller, id as string, changes), shortUrl),
    },
    {
      ...writes,
      name: "delete_link",
      title: "Delete a link",
      description: "Permanently deletes a link. Its short URL stops working, and its slug can't be reused.",
      input: byId,
      output: deletionSchema,
      annotations: REPLACES,
      async question(caller, { id }) {
        const { slug, url } = await links.get(caller, id as string);
        return `Permanently delete the link ${shortUrl}/${slug} to ${url}? The slug can't be used again.`;
      },
      run: async (caller, { id }) => {
        await links.remove(caller, id as string);
        return { deleted: true, id };
      },
    },
  ];
}
