import { z } from "zod";
import { pageOf } from "../http/pagination.ts";
import { type CamelCase, camelCase, hasAtMost, isLine, isText } from "../http/text.ts";
import { stringThat } from "../http/validate.ts";
import { rulesSchema, shownRules } from "./redirect-rules.ts";
import {
  HOST_MAX,
  isSlug,
  type ReservedNames,
  SLUG,
  SLUG_MAX,
  SLUG_RULE,
  toHost,
  URL_MAX,
  validateDestination,
} from "./rules.ts";

export const LINK_EXAMPLE = {
  id: "lnk_01JAV4T9Q5YQ8Z6K3W2N7R1XCE",
  url: "https://example.com/spring",
  short_url: "https://go.example/spring",
  domain: "go.example",
  slug: "spring",
  title: null,
  tags: ["mail"],
  external_id: null,
  metadata: {},
  archived: false,
  expires_at: null,
  max_clicks: null,
  redirect_type: 302 as const,
  fallback_url: null,
  forward_query: true,
  forward_path: false,
  rules: [],
  card: null,
  has_password: false,
  clicks: 17,
  bot_clicks: 2,
  last_clicked_at: "2026-03-01T09:30:00.000Z",
  created_at: "2026-02-28T12:00:00.000Z",
  updated_at: "2026-02-28T12:00:00.000Z",
  created_by: "usr_01JAV4Q7M2X9C5B8N3K6T0R1WF",
  created_via: "lgc_Zr3vYb0aQn5fTtK1",
  disabled_at: null,
  disabled_reason: null,
};

const TEXT_MAX = 255;
const PASSWORD_MIN = 4;
export const PASSWORD_MAX = 128;
const TAGS_MAX = 20;
const TAG_MAX = 50;
const METADATA_KEYS_MAX = 50;
const METADATA_KEY_MAX = 40;
const METADATA_VALUE_MAX = 500;
const CARD_DESCRIPTION_MAX = 500;
const TIME_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const INT32_MAX = 2 ** 31 - 1;

/** Builds the schema of a text from its length in characters, which may be restricted further. */
export const textOf = (min: number, max: number, rule: string, isAllowed = (_: string) => true) =>
  stringThat(
    (text) => (hasAtMost(max, text) && !hasAtMost(min - 1, text) && isAllowed(text) ? undefined : rule),
    { ...(min > 0 && { minLength: min }), maxLength: max },
  );
export const singleLine = (max: number, min = 1) =>
  textOf(min, max, `must be ${min} to ${max} characters without control characters`, isLine);
export const anyTime = z.iso
  .datetime({
    offset: true,
    abort: true,
    error: "must be an RFC 3339 time with a time zone, for example 2030-01-31T12:00:00Z",
  })
  // RFC 3339 §1: years have four digits, but a time zone offset can lead past the year 9999 in UTC.
  .refine((text) => Date.parse(text) <= TIME_MAX, { error: "must be before the year 10000 in UTC" });
export const futureTime = anyTime.refine((text) => Date.parse(text) > Date.now(), {
  error: "must be in the future",
});
const pastTime = anyTime
  .refine((text) => Date.parse(text) <= Date.now(), { error: "must not be in the future" })
  .refine((text) => Date.parse(text) >= 0, { error: "must not be before 1970" });

export const tag = singleLine(TAG_MAX);
export const externalId = singleLine(TEXT_MAX);
export const host = textOf(0, HOST_MAX, `must be at most ${HOST_MAX} characters`);
export const slug = stringThat((text) => (isSlug(text) ? undefined : SLUG_RULE), {
  pattern: SLUG.source,
  maxLength: SLUG_MAX,
});

export const tags = z
  .array(tag, { error: "must be an array of strings" })
  .max(TAGS_MAX, { error: `must have at most ${TAGS_MAX} tags` })
  .transform((values) => [...new Set(values)]);

// A single check instead of a union, which is slow for each invalid value, and a body can hold a hundred thousand.
const metadataValue = z
  .unknown()
  .refine(isMetadataValue, {
    error: `must be a string of at most ${METADATA_VALUE_MAX} characters, a number, a boolean or null`,
  })
  .meta({
    type: ["string", "number", "boolean", "null"],
    maxLength: METADATA_VALUE_MAX,
  }) as z.ZodType<Link["metadata"][string]>;

function isMetadataValue(value: unknown): boolean {
  if (typeof value === "string") return hasAtMost(METADATA_VALUE_MAX, value) && isText(value);
  return value === null || typeof value === "boolean" || Number.isFinite(value);
}

const metadata = z
  .record(singleLine(METADATA_KEY_MAX), metadataValue)
  .refine((record) => Object.keys(record).length <= METADATA_KEYS_MAX, {
    error: `must have at most ${METADATA_KEYS_MAX} keys`,
  })
  .meta({ maxProperties: METADATA_KEYS_MAX });

const redirectTypes = z.union([z.literal(301), z.literal(302), z.literal(307), z.literal(308)], {
  error: "must be 301, 302, 307 or 308",
});

const maxClicks = z
  .int({ error: "must be a whole number", abort: true })
  .min(1, { error: "must be at least 1" })
  .max(INT32_MAX, { error: `must be at most ${INT32_MAX}` });

const CARD_DESCRIPTION_RULE = `must be at most ${CARD_DESCRIPTION_MAX} characters of valid text`;
const cardDescription = textOf(0, CARD_DESCRIPTION_MAX, CARD_DESCRIPTION_RULE, isText);

export function linkSchemas(reserved: ReservedNames) {
  const destination = stringThat((text) => validateDestination(text, reserved), {
    format: "uri",
    maxLength: URL_MAX,
  });
  const cardTitle = singleLine(TEXT_MAX);
  const ofCard = {
    description: cardDescription.nullable().optional(),
    image_url: destination.nullable().optional(),
  };
  const card = z.strictObject({ title: cardTitle, ...ofCard }).overwrite((given) => ({
    title: given.title,
    description: given.description || null,
    image_url: given.image_url ?? null,
  }));
  const fields = {
    url: destination.describe("The destination: an absolute http or https URL."),
    domain: host
      .transform((text) => toHost(text))
      .transform((own) => (own === reserved.shortHost ? null : own))
      .nullable()
      .describe("The host of the short URL: one of your domains, or this service's."),
    slug: slug.describe("The path of the short URL. Defaults to a random slug."),
    title: singleLine(TEXT_MAX)
      .nullable()
      .describe("A display name, shown to visitors only on the preview page."),
    tags: tags.describe("Labels to filter links by."),
    external_id: externalId.nullable().describe("Your own ID for the link, unique in your organization."),
    metadata: metadata.describe("Key-value pairs to store: strings, numbers, booleans or null."),
    expires_at: futureTime.nullable().describe("From then on, visitors get a 410 or the fallback."),
    max_clicks: maxClicks
      .nullable()
      .describe("After how many clicks, those of bots included, visitors get a 410 or the fallback."),
    redirect_type: redirectTypes.describe("The HTTP status of the redirect. Defaults to 302."),
    fallback_url: destination
      .nullable()
      .describe(
        "The fallback: where visitors of an unavailable link go, uncounted. Defaults to the organization's.",
      ),
    forward_query: z
      .boolean()
      .describe("Whether the destination gets visitors' query parameters. Defaults to true."),
    forward_path: z.boolean().describe("Whether it also gets the rest of their path. Defaults to false."),
    rules: rulesSchema(destination, anyTime).describe(
      "Destinations of some visitors. The first rule that applies counts.",
    ),
    card: card.nullable().describe("What chats and social networks show of the link."),
    password: singleLine(PASSWORD_MAX, PASSWORD_MIN)
      .nullable()
      .meta({ writeOnly: true })
      .describe("What visitors must enter."),
  };
  const { url, ...optional } = fields;
  const create = z.strictObject({ url, ...z.object(optional).partial().shape }).meta({
    title: "NewLink",
    examples: [{ url: "https://example.com/spring", title: "Spring sale", tags: ["mail"] }],
  });
  const archived = z
    .boolean()
    .describe("Whether the link is archived. While it is, the short URL returns 410.");
  const replaced = metadata.describe("Key-value pairs that replace all of those stored with the link.");
  const update = z
    .strictObject({ ...fields, metadata: replaced, archived })
    .partial()
    .meta({ title: "LinkChanges", examples: [{ title: "Spring sale", expires_at: "2030-01-31T12:00:00Z" }] });
  const patchedCard = z.strictObject({ title: cardTitle.nullable().optional(), ...ofCard });
  const mergePatch = update.extend({ card: patchedCard.nullable().optional() });
  const count = z.int({ error: "must be a whole number" }).min(0, { error: "must be at least 0" });
  const { password: _, ...importable } = create.shape;
  const imported = z.strictObject({
    ...importable,
    slug: fields.slug,
    archived: archived.optional(),
    expires_at: anyTime.nullable().optional(),
    clicks: count.optional(),
    bot_clicks: count.optional(),
    created_at: pastTime.optional(),
    last_clicked_at: pastTime.nullable().optional(),
  });
  return { create, update, mergePatch, imported, fallbackUrl: destination.nullable() };
}

/** Builds the schema of an upsert: that of a new link, whose `external_id` may repeat the one in the path. */
export function withExternalId({ shape }: ReturnType<typeof linkSchemas>["create"], inPath: string) {
  return z.strictObject({
    ...shape,
    external_id: z
      .literal(inPath, { error: "must match the external_id in the path, or be omitted" })
      .default(inPath)
      .pipe(externalId),
  });
}

const time = z.iso.datetime();

export const linkSchema = z
  .object({
    id: z.string(),
    // Without the format: a URL is kept as it was sent, and browsers accept more than RFC 3986.
    url: z.string().describe("The destination."),
    short_url: z.string().meta({ format: "uri" }).describe("The URL to share."),
    domain: z.string().describe("The host of the short URL."),
    slug: z.string().describe("The path of the short URL."),
    title: z.string().nullable(),
    tags: z.array(z.string()),
    external_id: z.string().nullable(),
    metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
    archived: z.boolean(),
    expires_at: time.nullable(),
    max_clicks: z.int().nullable(),
    redirect_type: z.literal([301, 302, 307, 308]),
    fallback_url: z
      .string()
      .nullable()
      .describe(
        "Where visitors go while the link is archived, expired or used up. `null` stands for the `fallback_url` of the organization.",
      ),
    forward_query: z
      .boolean()
      .describe("Whether parameters that a visitor adds to the short URL are added to the destination."),
    forward_path: z
      .boolean()
      .describe(
        "Whether what a visitor adds to the path of the short URL is added to that of the destination.",
      ),
    rules: shownRules.describe(
      "Where visitors go for whom a rule applies, instead of `url`. The first one that applies counts.",
    ),
    card: z
      .object({ title: z.string(), description: z.string().nullable(), image_url: z.string().nullable() })
      .nullable()
      .describe(
        "What chats and social networks show of the link. `null` stands for the preview of the destination.",
      ),
    has_password: z.boolean().describe("Whether visitors must enter a password."),
    clicks: z
      .int()
      .describe(
        "The number of redirects, without those of known bots. If a server is killed, the clicks that it had not written are lost, except for links with `max_clicks`: those of its last 100 ms, or more if it was waiting for the processor or the database.",
      ),
    bot_clicks: z
      .int()
      .describe("The number of redirects of known bots, whose user agents say that they are."),
    last_clicked_at: time.nullable(),
    created_at: time,
    updated_at: time.describe("When the link was last changed. Clicks don't count as changes."),
    created_by: z.string().describe("The ID of the client or user that created the link."),
    created_via: z.string().nullable().describe("The client ID of the app that the user used, if any."),
    disabled_at: time
      .nullable()
      .describe(
        "When the operator of the service disabled the link. From then on, the short URL returns 410, and the link can't be changed.",
      ),
    disabled_reason: z.string().nullable(),
  })
  .meta({ title: "Link", examples: [LINK_EXAMPLE] });

export const linkPageSchema = pageOf(linkSchema, "LinkPage", LINK_EXAMPLE);

// Name in JSON, property, and whether it is a time.
const PROPERTIES = Object.keys(linkSchema.shape).map(
  (name) => [name, camelCase(name) as keyof Link, name.endsWith("_at")] as const,
);

export type LinkInput = z.output<ReturnType<typeof linkSchemas>["update"]>;
type LinkView = Omit<z.output<typeof linkSchema>, "short_url">;

/** A link as it is stored. Times are epoch milliseconds, and every change but a click increments `version`. */
export type Link = {
  organizationId: string;
  version: number;
  /** The host of the organization's domain that has the link. Null for the server's own. */
  domain: string | null;
} & {
  [Name in keyof Omit<LinkView, "domain"> as CamelCase<Name>]: Name extends `${string}_at`
    ? number | Extract<LinkView[Name], null>
    : LinkView[Name];
};
/** The fields of a link that a caller may set. Only the store gets the hash of the password, an argon2id PHC string. */
export type LinkFields = Pick<Link, CamelCase<Exclude<keyof LinkInput, "password">>> & {
  passwordHash: string | null;
};
/** Changes to a link; fields that are absent or undefined stay as they are. */
export type LinkChanges = { [Field in keyof LinkFields]?: LinkFields[Field] | undefined };

/** Converts all fields but the password, which has to be hashed. */
export function toFields(input: LinkInput): LinkChanges {
  const fields: Record<string, unknown> = {};
  for (const [name, property, isTime] of PROPERTIES) {
    const value = input[name as keyof LinkInput];
    if (value !== undefined) fields[property] = isTime && value !== null ? Date.parse(String(value)) : value;
  }
  return fields as LinkChanges;
}

export function toView(link: Link, shortUrl: string): z.output<typeof linkSchema> {
  const view: Record<string, unknown> = {};
  for (const [name, property, isTime] of PROPERTIES) {
    const value = link[property];
    view[name] = !isTime ? value : typeof value === "number" ? new Date(value).toISOString() : null;
  }
  const url = shortUrlOf(link, shortUrl);
  const [, , domain = ""] = url.split("/", 3);
  return { ...(view as LinkView), domain, short_url: url };
}

/** @param shortUrl the origin of short links on the server's own host, whose scheme those of domains have, too */
export function shortUrlOf({ domain, slug }: Pick<Link, "domain" | "slug">, shortUrl: string): string {
  return domain ? `${shortUrl.slice(0, shortUrl.indexOf("//") + 2)}${domain}/${slug}` : `${shortUrl}/${slug}`;
}

/** Returns the entity tag of a link. Clicks don't change it. */
export function linkTag({ version }: Pick<Link, "version">): string {
  return `"${version}"`;
}

export function linkResponse(link: Link, shortUrl: string) {
  return { status: 200, headers: { ETag: linkTag(link) }, body: toView(link, shortUrl) };
}

export function createdLink(link: Link, shortUrl: string) {
  const { headers, body } = linkResponse(link, shortUrl);
  return { status: 201, headers: { Location: `/v1/links/${link.id}`, ...headers }, body };
}
