import { z } from "zod";
import { invalidField, validate } from "../http/validate.ts";
import { LINKS_PER_BULK, type Limits } from "../plans.ts";
import { bulkResultSchema, problemView } from "./bulk.ts";
import { CHANGED_MAX, type ChangeResult, idsUpTo } from "./change-many.ts";
import { changesSchema } from "./changes.ts";
import { linkFilter } from "./list.ts";
import { LINK_EXAMPLE, toView } from "./schema.ts";

/** The most characters of links in a response, unless it is to an agent. A thousand of the usual size have as many. */
export const LINKS_LENGTH = 2 ** 20;

const COUNT_RULE = { error: `must be a whole number from 1 to ${CHANGED_MAX.toLocaleString("en")}` };

const body = z.strictObject({
  ids: idsUpTo(LINKS_PER_BULK).optional().describe("The IDs of the links. Repeated ones count once."),
  filter: linkFilter
    .optional()
    .describe("Instead of `ids`: which links, as in the query of their list. Without fields, all of them."),
  expected_count: z
    .int(COUNT_RULE)
    .min(1, COUNT_RULE)
    .max(CHANGED_MAX, COUNT_RULE)
    .optional()
    .describe(
      "How many links match the filter, up to the requests per minute of your plan. If another number matches, no link is changed.",
    ),
  changes: changesSchema,
});

const isTarget = ({ ids, filter, expected_count }: Partial<z.output<typeof body>>) =>
  ids === undefined
    ? filter !== undefined && expected_count !== undefined
    : filter === undefined && expected_count === undefined;

export const bulkUpdateBody = body
  .refine(isTarget, {
    error: "must have either ids, or filter and expected_count",
    when: ({ issues }) => issues.length === 0,
  })
  .meta({
    title: "BulkLinkChanges",
    examples: [
      {
        ids: [LINK_EXAMPLE.id],
        changes: {
          add_tags: ["summer"],
          replace_in_url: { find: "/spring", with: "/summer" },
          utm: { campaign: "summer", term: null },
        },
      },
    ],
  });

/** @throws Problem 422, also for more links than the plan has requests per minute: each counts as one */
export function readBulkUpdate(input: unknown, { requests_per_minute: limit }: Limits) {
  const update = validate(bulkUpdateBody, input);
  if ((update.expected_count ?? 0) <= limit) return update;
  throw invalidField("expected_count", `must be at most ${limit}, the requests per minute of your plan`);
}

const { link, ...others } = bulkResultSchema.shape;
const MISSING =
  "The link, unless there is an error. Omitted once the results have 1 MB of links; over MCP, 64 KB.";
const changeResultSchema = z.object({
  id: z.string().describe("The ID of the link."),
  ...others,
  link: link.describe(MISSING),
});

export const changeResultsSchema = z
  .object({
    results: z
      .array(changeResultSchema)
      .describe("One result per link, in the order of the IDs, or newest first."),
  })
  .meta({
    title: "LinkChangeResults",
    examples: [
      {
        results: [
          { id: LINK_EXAMPLE.id, status: 200, link: LINK_EXAMPLE },
          {
            id: "lnk_01JAV4T9Q5YQ8Z6K3W2N7R1XCF",
            status: 404,
            error: { code: "not_found", detail: "Link not found." },
          },
        ],
      },
    ],
  });

export function changeResultView({ id, link, error }: ChangeResult, shortUrl: string) {
  if (error) return { id, ...problemView(error) };
  return { id, status: 200, ...(link && { link: toView(link, shortUrl) }) };
}
