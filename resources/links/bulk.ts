import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { CountFurther } from "../access/bearer.ts";
import { fieldErrorSchema, Problem } from "../http/problem.ts";
import { validate } from "../http/validate.ts";
import type { Limits } from "../plans.ts";
import { LINK_EXAMPLE, linkSchema, toView } from "./schema.ts";
import type { Link } from "./types.ts";

export type BulkResult = Link | Problem;

/** Builds the documented schema of the body, with the schema of each link. */
export function bulkBody(link: z.ZodObject, limit: number) {
  return z.strictObject({ links: z.array(link).min(1).max(limit) }).meta({
    title: "NewLinks",
    examples: [{ links: [{ url: "https://example.com/a" }, { url: "https://example.com/b" }] }],
  });
}

export const bulkResultSchema = z.object({
  status: z.int().describe("The HTTP status that a request for this link by itself would return."),
  link: linkSchema.optional().describe("The link, unless there is an error."),
  error: z
    .object({ code: z.string(), detail: z.string(), errors: z.array(fieldErrorSchema).optional() })
    .optional()
    .describe("The error that such a request would return, if any."),
});

// 100 of the largest take 100 ms. Other requests are served between two turns, and what they write is committed between two
// parts. After a slow part, the process pauses for as long as it took.
const LINKS_PER_TURN = 5;
const LINKS_PER_PART = 10;
const LONG_MS = 5;

export const bulkResultsSchema = z
  .object({
    results: z.array(bulkResultSchema).describe("One result per link, in the order of the request."),
  })
  .meta({
    title: "LinkResults",
    examples: [
      {
        results: [
          { status: 201, link: LINK_EXAMPLE },
          {
            status: 422,
            error: {
              code: "invalid_url",
              detail: "url must be an http or https URL.",
              errors: [{ field: "url", message: "must be an http or https URL" }],
            },
          },
        ],
      },
    ],
  });

/**
 * Creates links concurrently. Those that claim the same slug or external id wait for one another, so the first gets it.
 * Rejects only on an unexpected error, after which some links may exist.
 * @throws Problem 422 for no links, and for more than the plan allows; 429 if not all links are within the rate limit
 */
export async function createLinksInBulk(
  input: unknown,
  { links_per_bulk: limit }: Limits,
  countFurther: CountFurther,
  create: (input: unknown, index: number) => Promise<Link>,
): Promise<BulkResult[]> {
  const error = `must have 1 to ${limit} links`;
  // Links are validated one by one, so an invalid link doesn't affect the others.
  const list = z.array(z.unknown()).min(1, { error }).max(limit, { error });
  const { links } = validate(z.strictObject({ links: list }), input);
  if (links.length > 1) await countFurther(links.length - 1);
  const lastByClaim = new Map<string, Promise<BulkResult>>();
  const results: Promise<BulkResult>[] = [];
  let started = performance.now();
  for (const [index, link] of links.entries()) {
    if (index > 0 && index % LINKS_PER_TURN === 0) await nextTurn();
    if (index % LINKS_PER_PART === 0) {
      await Promise.all(results);
      const took = performance.now() - started;
      if (took > LONG_MS) await sleep(took);
      started = performance.now();
    }
    const claims = claimsOf(link);
    const result = Promise.all(claims.map((claim) => lastByClaim.get(claim))).then(() =>
      create(link, index).catch(toResult),
    );
    result.catch(() => {}); // reported below
    for (const claim of claims) lastByClaim.set(claim, result);
    results.push(result);
  }
  return Promise.all(results);
}

/** Shows why one of several links failed. */
export function problemView(problem: Problem) {
  const { status, ...error } = problem.toJSON();
  return { status, error };
}

function claimsOf(link: unknown): string[] {
  const { slug, external_id } = (link ?? {}) as Record<string, unknown>;
  return Object.entries({ slug, external_id })
    .filter(([, value]) => typeof value === "string")
    .map((claim) => claim.join(" "));
}

function toResult(error: unknown): Problem {
  if (error instanceof Problem) return error;
  throw error;
}

export function bulkResults(results: BulkResult[], shortUrl: string) {
  const views = results.map(
    (result): z.output<typeof bulkResultSchema> =>
      result instanceof Problem ? problemView(result) : { status: 201, link: toView(result, shortUrl) },
  );
  return { status: 200, body: { results: views } };
}
