import { z } from "zod";
import type { Limits } from "../plans.ts";
import type { Link } from "../ports.ts";
import { fieldErrorSchema, Problem } from "../problem.ts";
import { validate } from "../validate.ts";
import { LINK_EXAMPLE, linkSchema, toView } from "./schema.ts";

/** What became of one link of a bulk call. */
export type Outcome = Link | Problem;

/** The body of a bulk call. Each link is checked by itself, so that one that is wrong does not stop the others. */
export const bulkSchema = z.strictObject({ links: z.array(z.unknown(), { error: "This must be a list." }) });

/** The same body as the document shows it, with what each link has to be. */
export function bulkBody(link: z.ZodObject, limit: number) {
  return z.strictObject({ links: z.array(link).min(1).max(limit) }).meta({
    title: "NewLinks",
    examples: [{ links: [{ url: "https://example.com/a" }, { url: "https://example.com/b" }] }],
  });
}

/** One link of a bulk call, as the API shows it: its status is the one that it would have got alone. */
const outcomeSchema = z.object({
  status: z.int().describe("The status that it would have got alone."),
  link: linkSchema.optional().describe("The link, if it was made."),
  error: z
    .object({ code: z.string(), detail: z.string(), errors: z.array(fieldErrorSchema).optional() })
    .optional()
    .describe("Why not, if it was not."),
});

type OutcomeView = z.output<typeof outcomeSchema>;

/** What became of a bulk call, as the API shows it. */
export const outcomesSchema = z
  .object({ results: z.array(outcomeSchema).describe("One for each link, in the order of the request.") })
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
              detail: "url: The scheme must be http or https.",
              errors: [{ field: "url", message: "The scheme must be http or https." }],
            },
          },
        ],
      },
    ],
  });

/**
 * Makes many links at once, in the words of one. Those that want the same slug or external id wait for one another, so
 * that the first one has it. Rejects only for what is nobody's mistake; some links may have been made then.
 * @throws Problem 422 for none, and for more than the plan allows
 */
export function createMany(
  input: unknown,
  { links_per_bulk: limit }: Limits,
  create: (input: unknown, index: number) => Promise<Link>,
): Promise<Outcome[]> {
  const error = `Send 1 to ${limit} links.`;
  const atMost = bulkSchema.extend({ links: bulkSchema.shape.links.min(1, { error }).max(limit, { error }) });
  const { links } = validate(atMost, input);
  const before = new Map<string, Promise<Outcome>>();
  const outcomes = links.map((link, index) => {
    const names = claimsOf(link);
    const made = Promise.all(names.map((name) => before.get(name))).then(() =>
      create(link, index).catch(asOutcome),
    );
    for (const name of names) before.set(name, made);
    return made;
  });
  return Promise.all(outcomes);
}

/** An outcome in the words of the API. */
export function toOutcomeView(outcome: Outcome, shortUrl: string): OutcomeView {
  if (!(outcome instanceof Problem)) return { status: 201, link: toView(outcome, shortUrl) };
  const { status, code, message, errors } = outcome;
  return { status, error: { code, detail: message, ...(errors && { errors }) } };
}

/** What a link wants that nobody else may have. */
function claimsOf(link: unknown): string[] {
  const { slug, external_id } = (link ?? {}) as Record<string, unknown>;
  return Object.entries({ slug, external_id })
    .filter(([, value]) => typeof value === "string")
    .map((claim) => claim.join(" "));
}

function asOutcome(error: unknown): Problem {
  if (error instanceof Problem) return error;
  throw error;
}
