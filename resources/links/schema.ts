import { z } from "zod";
import type { Link, LinkFields } from "../ports.ts";
import { isText, type Own, refuseSlug, refuseUrl } from "./rules.ts";

const TEXT_MAX = 255;
const TAGS_MAX = 20;
const TAG_MAX = 50;
const METADATA_KEYS_MAX = 50;
const METADATA_KEY_MAX = 40;
const METADATA_VALUE_MAX = 500;
const INT32_MAX = 2 ** 31 - 1;

/** A rule that is a function: what it returns is the message. */
function obeys(rule: (text: string) => string | undefined) {
  return z.string({ error: "This must be a string." }).check((context) => {
    const message = rule(context.value);
    if (message) context.issues.push({ code: "custom", input: context.value, message });
  });
}

const line = (max: number) =>
  obeys((text) =>
    text.length < 1 || text.length > max || hasControl(text)
      ? `This must have 1 to ${max} characters and no control characters.`
      : undefined,
  );

// A NUL in a text is an error in PostgreSQL, and none of these is meant to have lines.
function hasControl(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return /[\u0000-\u001f\u007f]/.test(text) || !text.isWellFormed();
}

const futureTime = z.iso
  .datetime({
    offset: true,
    abort: true,
    error: "This must be an RFC 3339 time with a zone, such as 2030-01-31T12:00:00Z.",
  })
  .refine((text) => Date.parse(text) > Date.now(), { error: "This must lie in the future." });

const tags = z
  .array(line(TAG_MAX), { error: "This must be a list of strings." })
  .max(TAGS_MAX, { error: `A link has at most ${TAGS_MAX} tags.` })
  .transform((list) => [...new Set(list)]);

const metadata = z
  .record(
    line(METADATA_KEY_MAX),
    z.union([z.string().max(METADATA_VALUE_MAX).refine(isText), z.number(), z.boolean(), z.null()], {
      error: `A value is a text of at most ${METADATA_VALUE_MAX} characters, a number, true, false or null.`,
    }),
    { error: "This must be an object." },
  )
  .refine((record) => Object.keys(record).length <= METADATA_KEYS_MAX, {
    error: `Metadata has at most ${METADATA_KEYS_MAX} keys.`,
  });

const redirectTypes = z.union([z.literal(301), z.literal(302), z.literal(307), z.literal(308)], {
  error: "This must be 301, 302, 307 or 308.",
});

const maxClicks = z
  .int({ error: "This must be a whole number.", abort: true })
  .min(1, { error: "This must be at least 1." })
  .max(INT32_MAX, { error: `This must be at most ${INT32_MAX}.` });

/** What callers send; made for the addresses that are our own. */
export function linkSchemas(own: Own) {
  const fields = {
    url: obeys((text) => refuseUrl(text, own)).describe(
      "Where the link leads: an absolute http or https URL.",
    ),
    slug: obeys((text) => refuseSlug(text, own)).describe(
      "The last part of the short address; a random one if absent.",
    ),
    title: line(TEXT_MAX).nullable().describe("A name for people."),
    tags: tags.describe("Words to find the link by."),
    external_id: line(TEXT_MAX).nullable().describe("Your own id of the link; unique in your organization."),
    metadata: metadata.describe("Anything you want to keep with the link."),
    expires_at: futureTime.nullable().describe("From then on the short address answers 410."),
    max_clicks: maxClicks.nullable().describe("After so many clicks the short address answers 410."),
    redirect_type: redirectTypes.describe("The status of the redirect."),
  };
  const { url, ...optional } = fields;
  const create = z.strictObject({ url, ...z.object(optional).partial().shape });
  const update = z
    .strictObject({ ...fields, archived: z.boolean({ error: "This must be true or false." }) })
    .partial();
  return { create, update };
}

const time = z.iso.datetime();

/** A link as the API shows it. */
export const linkSchema = z.object({
  id: z.string(),
  url: z.string(),
  short_url: z.string(),
  slug: z.string(),
  title: z.string().nullable(),
  tags: z.array(z.string()),
  external_id: z.string().nullable(),
  metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  archived: z.boolean(),
  expires_at: time.nullable(),
  max_clicks: z.int().nullable(),
  redirect_type: z.int(),
  clicks: z.int(),
  last_clicked_at: time.nullable(),
  created_at: time,
  updated_at: time,
  created_by: z.string(),
});

/** A page of links, newest first. */
export const linkPageSchema = z.object({ data: z.array(linkSchema), next_cursor: z.string().nullable() });

export type LinkInput = z.output<ReturnType<typeof linkSchemas>["update"]>;

/** The input in the words of the store; what was not sent is not there. */
export function toFields(input: LinkInput): Partial<LinkFields> {
  const { external_id, expires_at, max_clicks, redirect_type, ...same } = input;
  return {
    ...same,
    ...(external_id !== undefined && { externalId: external_id }),
    ...(expires_at !== undefined && { expiresAt: expires_at === null ? null : Date.parse(expires_at) }),
    ...(max_clicks !== undefined && { maxClicks: max_clicks }),
    ...(redirect_type !== undefined && { redirectType: redirect_type }),
  };
}

/** A link in the words of the API. */
export function toView(link: Link, shortUrl: string): z.output<typeof linkSchema> {
  return {
    id: link.id,
    url: link.url,
    short_url: `${shortUrl}/${link.slug}`,
    slug: link.slug,
    title: link.title,
    tags: link.tags,
    external_id: link.externalId,
    metadata: link.metadata,
    archived: link.archived,
    expires_at: toTime(link.expiresAt),
    max_clicks: link.maxClicks,
    redirect_type: link.redirectType,
    clicks: link.clicks,
    last_clicked_at: toTime(link.lastClickedAt),
    created_at: toTime(link.createdAt),
    updated_at: toTime(link.updatedAt),
    created_by: link.createdBy,
  };
}

function toTime(at: number): string;
function toTime(at: number | null): string | null;
function toTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
