import { z } from "zod";
import { analyticsQuery, analyticsSchema } from "../../links/analytics.ts";
import { madeLink, madeLinks } from "../../links/answers.ts";
import { bulkBody, bulkSchema, outcomesSchema } from "../../links/bulk.ts";
import { type Links, listQuery } from "../../links/links.ts";
import { linkPageSchema, linkSchema, toView } from "../../links/schema.ts";
import { LINKS_PER_BULK, limitsOf } from "../../plans.ts";
import { ADDS, READS, REPLACES, type Tool } from "../tool.ts";

const byId = z.strictObject({ id: z.string().describe("The id of the link, such as lnk_01J9….") });

/** The tools for links. */
export function linkTools(links: Links, shortUrl: string): Tool[] {
  return [...readTools(links, shortUrl), ...writeTools(links, shortUrl)];
}

function readTools(links: Links, shortUrl: string): Tool[] {
  const reads = { scopes: ["links:read"], annotations: READS } satisfies Partial<Tool>;
  return [
    {
      ...reads,
      name: "get_link",
      title: "Get a link",
      description: "Shows one link with its number of clicks.",
      input: byId,
      output: linkSchema,
      run: async (caller, { id }) => toView(await links.get(caller, id as string), shortUrl),
    },
    {
      ...reads,
      name: "list_links",
      title: "List links",
      description:
        "Lists links, newest first. Pass next_cursor as cursor, with the same filter, for the next page.",
      input: listQuery,
      output: linkPageSchema,
      run: async (caller, query) => {
        const { links: page, nextCursor } = await links.list(caller, query);
        return { data: page.map((link) => toView(link, shortUrl)), next_cursor: nextCursor };
      },
    },
    {
      ...reads,
      name: "get_link_analytics",
      title: "Get the clicks of a link",
      description:
        "Shows the clicks of one link by day, referrer and country, with those of known bots apart; the last 30 days unless others are asked for.",
      input: z.strictObject({ ...byId.shape, ...analyticsQuery.shape }),
      output: analyticsSchema,
      run: (caller, { id, ...days }) => links.analytics(caller, id as string, days),
    },
    {
      ...reads,
      name: "get_analytics",
      title: "Get the clicks of all links",
      description:
        "Shows the clicks of all links of the organization together, deleted ones included, by day, referrer and country; the last 30 days unless others are asked for.",
      input: analyticsQuery,
      output: analyticsSchema,
      run: (caller, days) => links.analytics(caller, undefined, days),
    },
  ];
}

function writeTools(links: Links, shortUrl: string): Tool[] {
  const { create, update } = links.schemas;
  const writes = { scopes: ["links:write"] } satisfies Partial<Tool>;
  return [
    {
      ...writes,
      name: "create_link",
      title: "Create a short link",
      description: "Makes a short link to a URL. Leave the slug out for a random one.",
      input: create,
      output: linkSchema,
      annotations: ADDS,
      operation: "createLink",
      run: async (caller, input) => madeLink(await links.create(caller, input), shortUrl),
    },
    {
      ...writes,
      name: "create_links",
      title: "Create many short links",
      description: `Makes up to ${LINKS_PER_BULK} short links. Each has its own result, in order: one that is refused does not stop the others, so look at every status.`,
      input: bulkSchema,
      shownInput: bulkBody(create, LINKS_PER_BULK),
      output: outcomesSchema,
      annotations: ADDS,
      operation: "createLinks",
      run: async (caller, input) =>
        madeLinks(await links.createMany(caller, input, limitsOf(caller.plan)), shortUrl),
    },
    {
      ...writes,
      name: "upsert_link",
      title: "Create or change a link by your own id",
      description:
        "Makes the link with this external_id, or gives the one that has it exactly these fields: what is left out is emptied, but for the slug, which stays as it is.",
      input: create.extend({ external_id: create.shape.external_id.unwrap().unwrap() }),
      output: z.object({ created: z.boolean().describe("Whether the link is new."), link: linkSchema }),
      annotations: REPLACES,
      run: async (caller, input) => {
        const { link, isNew } = await links.upsert(caller, input.external_id as string, input);
        return { created: isNew, link: toView(link, shortUrl) };
      },
    },
    {
      ...writes,
      name: "update_link",
      title: "Change a link",
      description:
        "Changes the fields that are given and leaves the others; null empties a field that may be empty.",
      input: z.strictObject({ ...byId.shape, ...update.shape }),
      output: linkSchema,
      annotations: REPLACES,
      run: async (caller, { id, ...changes }) =>
        toView(await links.update(caller, id as string, changes), shortUrl),
    },
    {
      ...writes,
      name: "delete_link",
      title: "Delete a link",
      description: "Deletes a link for good: its short address answers 410 and its slug is never used again.",
      input: byId,
      output: z.object({ deleted: z.literal(true), id: z.string() }),
      annotations: REPLACES,
      run: async (caller, { id }) => {
        await links.remove(caller, id as string);
        return { deleted: true, id };
      },
    },
  ];
}
