import { z } from "zod";
import type { Caller } from "../bearer.ts";
import { type Links, listQuery } from "../links/links.ts";
import { linkPageSchema, linkSchema, toView } from "../links/schema.ts";
import { organizationSchema, type ShowOrganization } from "../organization.ts";
import type { ApiScope } from "../scopes.ts";

/** One tool: the same core as REST, under a name that an agent reads. */
export type Tool = {
  name: string;
  title: string;
  description: string;
  /** Every scope that it needs. */
  scopes: readonly ApiScope[];
  input: z.ZodObject;
  output: z.ZodObject;
  annotations: {
    readOnlyHint: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint: boolean;
  };
  run(caller: Caller, input: Record<string, unknown>): Promise<Record<string, unknown>>;
};

type ToolOptions = { links: Links; shortUrl: string; showOrganization: ShowOrganization };

const READS = { readOnlyHint: true, openWorldHint: false };
const byId = z.strictObject({ id: z.string().describe("The id of the link, such as lnk_01J9….") });

/** The tools of the MCP endpoint. */
export function createTools({ links, shortUrl, showOrganization }: ToolOptions): Tool[] {
  const { create, update } = links.schemas;
  const view = (link: Parameters<typeof toView>[0]) => toView(link, shortUrl);
  return [
    {
      name: "whoami",
      title: "Who am I",
      description:
        "Tells which organization the token acts for, its plan and limits, and the token's scopes.",
      scopes: [],
      input: z.strictObject({}),
      output: z.object({
        organization: organizationSchema,
        client_id: z.string(),
        user_id: z.string().nullable(),
        scopes: z.array(z.string()),
      }),
      annotations: READS,
      run: async ({ organizationId, clientId, userId, scopes }) => ({
        organization: await showOrganization(organizationId),
        client_id: clientId,
        user_id: userId ?? null,
        scopes: [...scopes],
      }),
    },
    {
      name: "create_link",
      title: "Create a short link",
      description: "Makes a short link to a URL. Leave the slug out for a random one.",
      scopes: ["links:write"],
      input: create,
      output: linkSchema,
      annotations: {
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
        openWorldHint: false,
      },
      run: async (caller, input) => view(await links.create(caller, input)),
    },
    {
      name: "get_link",
      title: "Get a link",
      description: "Shows one link with its number of clicks.",
      scopes: ["links:read"],
      input: byId,
      output: linkSchema,
      annotations: READS,
      run: async (caller, { id }) => view(await links.get(caller, id as string)),
    },
    {
      name: "list_links",
      title: "List links",
      description:
        "Lists links, newest first. Pass next_cursor as cursor, with the same filter, for the next page.",
      scopes: ["links:read"],
      input: z.strictObject({
        ...listQuery.shape,
        limit: z.int().min(1).max(100).default(25),
        archived: z.boolean().optional(),
      }),
      output: linkPageSchema,
      annotations: READS,
      run: async (caller, { archived, ...query }) => {
        const text = archived === undefined ? query : { ...query, archived: String(archived) };
        const { links: page, nextCursor } = await links.list(caller, text);
        return { data: page.map(view), next_cursor: nextCursor };
      },
    },
    {
      name: "update_link",
      title: "Change a link",
      description:
        "Changes the fields that are given and leaves the others; null empties a field that may be empty.",
      scopes: ["links:write"],
      input: z.strictObject({ ...byId.shape, ...update.shape }),
      output: linkSchema,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      run: async (caller, { id, ...changes }) => view(await links.update(caller, id as string, changes)),
    },
    {
      name: "delete_link",
      title: "Delete a link",
      description: "Deletes a link for good: its short address answers 410 and its slug is never used again.",
      scopes: ["links:write"],
      input: byId,
      output: z.object({ deleted: z.literal(true), id: z.string() }),
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      run: async (caller, { id }) => {
        await links.remove(caller, id as string);
        return { deleted: true, id };
      },
    },
  ];
}
