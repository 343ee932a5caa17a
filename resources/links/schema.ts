import { z } from "zod";
import type { Link, LinkFields, MetadataValue } from "../ports.ts";
import { isLine, isText } from "../text.ts";
import { type Own, refuseSlug, refuseUrl, SLUG, URL_MAX } from "./rules.ts";

const TEXT_MAX = 255;
const TAGS_MAX = 20;
const TAG_MAX = 50;
const METADATA_KEYS_MAX = 50;
const METADATA_KEY_MAX = 40;
const METADATA_VALUE_MAX = 500;
const TIME_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const INT32_MAX = 2 ** 31 - 1;

/** A rule that is a function: what it returns is the message. `shown` is what JSON Schema can say of the rule. */
function obeys(rule: (text: string) => string | undefined, shown: z.core.GlobalMeta) {
  return z
    .string({ error: "This must be a string." })
    .check((context) => {
      const message = rule(context.value);
      if (message) context.issues.push({ code: "custom", input: context.value, message });
    })
    .meta(shown);
}

const line = (max: number) =>
  obeys(
    (text) =>
      text.length < 1 || text.length > max || !isLine(text)
        ? `This must have 1 to ${max} characters and no control characters.`
        : undefined,
    { minLength: 1, maxLength: max },
  );

const futureTime = z.iso
  .datetime({
    offset: true,
    abort: true,
    error: "This must be an RFC 3339 time with a zone, such as 2030-01-31T12:00:00Z.",
  })
  .refine((text) => Date.parse(text) > Date.now(), { error: "This must lie in the future." })
  // RFC 3339 §1: years have four digits; a zone may lead beyond them.
  .refine((text) => Date.parse(text) <= TIME_MAX, { error: "This must lie before the year 10000 in UTC." });

/** One tag, and what a list is asked for by. */
export const tag = line(TAG_MAX);

const tags = z
  .array(tag, { error: "This must be a list of strings." })
  .max(TAGS_MAX, { error: `A link has at most ${TAGS_MAX} tags.` })
  .transform((list) => [...new Set(list)]);

// One rule and no union, which takes its time over each wrong value: a body can hold a hundred thousand.
const metadataValue = z
  .unknown()
  .refine(isMetadataValue, {
    error: `A value is a text of at most ${METADATA_VALUE_MAX} characters, a number, true, false or null.`,
  })
  .meta({
    type: ["string", "number", "boolean", "null"],
    maxLength: METADATA_VALUE_MAX,
  }) as z.ZodType<MetadataValue>;

function isMetadataValue(value: unknown): boolean {
  if (typeof value === "string") return value.length <= METADATA_VALUE_MAX && isText(value);
  return value === null || typeof value === "boolean" || Number.isFinite(value);
}

const metadata = z
  .record(line(METADATA_KEY_MAX), metadataValue, { error: "This must be an object." })
  .refine((record) => Object.keys(record).length <= METADATA_KEYS_MAX, {
    error: `Metadata has at most ${METADATA_KEYS_MAX} keys.`,
  })
  .meta({ maxProperties: METADATA_KEYS_MAX });

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
    url: obeys((text) => refuseUrl(text, own), { maxLength: URL_MAX }).describe(
      "Where the link leads: an absolute http or https URL.",
    ),
    slug: obeys((text) => refuseSlug(text, own), { pattern: SLUG.source }).describe(
      "The last part of the short address; a random one if absent.",
    ),
    title: line(TEXT_MAX).nullable().describe("A name for people."),
    tags: tags.describe("Words to find the link by."),
    external_id: line(TEXT_MAX).nullable().describe("Your own id of the link; unique in your organization."),
    metadata: metadata.describe("Anything you want to keep with the link."),
    expires_at: futureTime.nullable().describe("From then on the short address answers 410."),
    max_clicks: maxClicks.nullable().describe("After so many clicks the short address answers 410."),
    redirect_type: redirectTypes.describe("The status of the redirect; 302 if absent."),
  };
  const { url, ...optional } = fields;
  const create = z.strictObject({ url, ...z.object(optional).partial().shape }).meta({
    title: "NewLink",
    examples: [{ url: "https://example.com/spring", title: "Spring sale", tags: ["mail"] }],
  });
  const update = z
    .strictObject({
      ...fields,
      archived: z
        .boolean({ error: "This must be true or false." })
        .describe("Whether the short address answers 410 for now."),
    })
    .partial()
    .meta({ title: "LinkChanges", examples: [{ title: "Spring sale", expires_at: "2030-01-31T12:00:00Z" }] });
  return { create, update };
}

/** What makes or replaces the link with an external id: as for a new one, which may say its external id again. */
export function withExternalId({ shape }: ReturnType<typeof linkSchemas>["create"], externalId: string) {
  return z.strictObject({
    ...shape,
    external_id: z
      .literal(externalId, { error: "This must be the external_id of the address, or be left out." })
      .default(externalId)
      .pipe(line(TEXT_MAX)),
  });
}

const time = z.iso.datetime();

/** A link, as an example. */
export const LINK_EXAMPLE = {
  id: "lnk_01JAV4T9Q5YQ8Z6K3W2N7R1XCE",
  url: "https://example.com/spring",
  short_url: "https://go.example/spring",
  slug: "spring",
  title: null,
  tags: ["mail"],
  external_id: null,
  metadata: {},
  archived: false,
  expires_at: null,
  max_clicks: null,
  redirect_type: 302 as const,
  clicks: 17,
  last_clicked_at: "2026-03-01T09:30:00.000Z",
  created_at: "2026-02-28T12:00:00.000Z",
  updated_at: "2026-02-28T12:00:00.000Z",
  created_by: "lgc_Zr3vYb0aQn5fTtK1",
};

/** A link as the API shows it. */
export const linkSchema = z
  .object({
    id: z.string(),
    url: z.string().describe("Where it leads."),
    short_url: z.string().describe("The address to share."),
    slug: z.string().describe("The last part of that address."),
    title: z.string().nullable(),
    tags: z.array(z.string()),
    external_id: z.string().nullable(),
    metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
    archived: z.boolean(),
    expires_at: time.nullable(),
    max_clicks: z.int().nullable(),
    redirect_type: z.literal([301, 302, 307, 308]),
    clicks: z
      .int()
      .describe(
        "How often it was followed. A server that is killed may lose the clicks of its last moment, about 100 ms; of a link with `max_clicks` none.",
      ),
    last_clicked_at: time.nullable(),
    created_at: time,
    updated_at: time.describe("The last change; a click is none."),
    created_by: z.string().describe("The client or the person who made it."),
  })
  .meta({ title: "Link", examples: [LINK_EXAMPLE] });

/** A page of links, newest first. */
export const linkPageSchema = z
  .object({
    data: z.array(linkSchema),
    next_cursor: z.string().nullable().describe("The cursor of the next page; null on the last one."),
  })
  .meta({ title: "LinkPage", examples: [{ data: [LINK_EXAMPLE], next_cursor: null }] });

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
