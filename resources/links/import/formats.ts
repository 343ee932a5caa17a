import type { z } from "zod";
import { invalidField } from "../../http/validate.ts";
import { NO_NAMES } from "../rules.ts";
import { linkSchemas } from "../schema.ts";
import { toBoolean, toObject, withoutEscape } from "./values.ts";

export type Fields = Record<string, unknown>;

/** Columns are compared by their letters and digits; of several columns for a field, the first with a value counts. */
export type Format = {
  name: string;
  /** The file has this format if it has all columns of one of these lists. */
  needs: string[][];
  /** By the field of the API. Without them, domain and slug are those of a `short_url`. */
  columns: Record<string, string[]>;
  /** Columns whose links must not be imported if they would lose what the column says: the reason, for a value. */
  refuses?: Record<string, (value: unknown) => string | undefined>;
  separator?: string;
  /** Columns that are destinations of some visitors. */
  rules?: { columns: string[]; convert(read: (column: string) => unknown): Fields[] };
  /** What a cell of a CSV file stands for. */
  readCell?(text: string): string;
};

/** A row, by plain names of its columns. `number` is that of a spreadsheet for CSV, and counts from 1 for JSON. */
export type FileRow = {
  number: number;
  fields: Fields;
  /** As the file has them, in the order of `LinkFile.columns`. */
  cells: readonly unknown[];
  /** How much of the file ends with this row, from 0 to 1. */
  share: number;
  /** Why the row can't be read. */
  refusal?: string | undefined;
};
/** An object in JSON is one column, and those of its fields that are read, such as `meta.maxVisits`, are others. */
export type LinkFile = { format: Format; columns: string[]; rows: AsyncIterable<FileRow> };

/** Called with the number of rows so far. May throw a Problem. */
export type CheckRows = (count: number) => void;

const PROTECTED = "The link is protected by a password, which can't be imported.";
/** Columns that have the names of their fields. */
const named = (...fields: string[]) => Object.fromEntries(fields.map((field) => [field, [field]]));
const CREATED = ["created_at", "created", "date created", "created date"];

/** The fields of the API that an import sets. The names that are reserved make no difference here. */
export const IMPORTED_FIELDS: Record<string, z.ZodType> = linkSchemas(NO_NAMES).imported.shape;

/** In the order in which they are recognized: those with the rarest columns first. */
const FORMATS: Format[] = [
  {
    name: "Shlink",
    needs: [["longUrl", "shortCode"]],
    columns: {
      ...named("domain", "title", "tags"),
      url: ["longUrl"],
      slug: ["shortCode"],
      short_url: ["shortUrl"],
      created_at: ["createdAt", "dateCreated"],
      clicks: ["visitsSummary.nonBots", "visitsSummary.total", "visits", "visitsCount"],
      expires_at: ["meta.validUntil"],
      max_clicks: ["meta.maxVisits"],
      forward_query: ["forwardQuery"],
    },
    separator: "|",
  },
  {
    name: "YOURLS",
    needs: [
      ["keyword", "url"],
      ["shorturl", "url", "timestamp"],
    ],
    columns: {
      ...named("url", "title", "clicks"),
      slug: ["keyword"],
      short_url: ["shorturl"],
      created_at: ["timestamp"],
    },
  },
  {
    name: "Kutt",
    needs: [["address", "target"]],
    columns: {
      ...named("domain", "created_at"),
      url: ["target"],
      slug: ["address"],
      short_url: ["link"],
      title: ["description"],
      clicks: ["visit_count"],
      expires_at: ["expire_in"],
    },
    // The API says whether there is a password, the table has its hash.
    refuses: { password: unlessFalse(PROTECTED), banned: ifTrue("banned", "The link is banned.") },
  },
  {
    name: "Short.io",
    needs: [
      ["originalURL", "path"],
      ["originalURL", "shortURL"],
    ],
    columns: {
      ...named("title", "tags", "archived"),
      url: ["originalURL"],
      slug: ["path"],
      short_url: ["secureShortURL", "shortURL"],
      created_at: CREATED,
      expires_at: ["expiresAt"],
      max_clicks: ["clicksLimit"],
      redirect_type: ["redirectType"],
      fallback_url: ["expiredURL"],
      clicks: ["humanClicks", "clicks", "totalClicks"],
    },
    refuses: { password: ifSet(PROTECTED), hasPassword: ifTrue("hasPassword", PROTECTED) },
  },
  {
    name: "Dub",
    needs: [
      ["Destination URL", "Short link"],
      ["url", "key", "shortLink"],
      ["url", "key", "domain"],
    ],
    columns: {
      ...named("domain", "title", "tags", "archived", "clicks"),
      url: ["Destination URL", "url"],
      slug: ["key"],
      short_url: ["Short link"],
      external_id: ["externalId"],
      created_at: CREATED,
      expires_at: ["expiresAt"],
      fallback_url: ["expiredUrl"],
      last_clicked_at: ["lastClicked"],
    },
    refuses: { password: ifSet(PROTECTED) },
    rules: { columns: ["ios", "android", "geo"], convert: dubRules },
  },
  {
    name: "Bitly",
    needs: [
      ["long_url", "link"],
      ["long_url", "bitlink"],
    ],
    columns: {
      ...named("title", "tags", "archived"),
      url: ["long_url"],
      short_url: ["custom_bitlinks", "custom_bitlink", "bitlink", "link"],
      created_at: CREATED,
      clicks: ["total_clicks", "clicks", "total_engagements", "engagements"],
    },
  },
  {
    name: "linkgate",
    needs: [["url"]],
    columns: named(...Object.keys(IMPORTED_FIELDS), "short_url"),
    refuses: {
      disabled_at: ifSet("The link was disabled by the operator of its service."),
      password: ifSet(PROTECTED),
      has_password: ifTrue("has_password", PROTECTED),
    },
    readCell: withoutEscape,
  },
];

/** The fields of nested objects that some format reads. */
export const NESTED_FIELDS = FORMATS.flatMap(({ columns }) => Object.values(columns).flat()).filter((name) =>
  name.includes("."),
);

/** Compares `createdAt`, `created_at` and `Created at` alike. */
export function plainName(column: string): string {
  return column.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** Returns the format of a file with these columns. @throws Problem 422 that names the columns of every format */
export function formatOf(columns: string[]): Format {
  const names = new Set(columns.map(plainName));
  const format = FORMATS.find(({ needs }) =>
    needs.some((list) => list.every((column) => names.has(plainName(column)))),
  );
  if (format) return format;
  const given = columns.filter(Boolean).slice(0, 30);
  const found = given.map((name) => name.slice(0, 50)).join(", ") || "none";
  const known = FORMATS.map(
    ({ name, needs }) => `${name} (${needs.map((list) => list.join(" and ")).join(", or ")})`,
  );
  const needed = known.reverse().join("; ");
  const rule = `must have the columns of a known format. Found: ${found}. Needed: ${needed}`;
  throw invalidField("file", rule);
}

/** Returns whether a column is one of those that the format has a use for. */
export function isRead(column: string, { columns, refuses = {}, rules }: Format): boolean {
  const names = [...Object.values(columns).flat(), ...Object.keys(refuses), ...(rules?.columns ?? [])];
  return names.some((name) => plainName(name) === plainName(column));
}

/** @throws Problem 422 if a column that is read is there twice, because only one could be imported */
export function rejectRepeated(columns: string[], format: Format): void {
  const names = columns.map(plainName);
  const repeated = columns.find(
    (column, index) => names.indexOf(plainName(column)) < index && isRead(column, format),
  );
  if (repeated !== undefined) throw invalidField("file", `must not have the column ${repeated} twice`);
}

/** Dub has a destination for iOS, one for Android, and one for each country. */
function dubRules(read: (column: string) => unknown): Fields[] {
  const systems = ["iOS", "Android"].map((os) => ({ if: { os }, url: read(os) }));
  const countries = Object.entries(Object(toObject(read("geo") ?? {}, "geo")));
  return [...systems, ...countries.map(([country, url]) => ({ if: { country }, url }))].filter(
    ({ url }) => url !== undefined,
  );
}

function ifSet(reason: string) {
  return () => reason;
}

function ifTrue(column: string, reason: string) {
  return (value: unknown) => {
    const flag = toBoolean(value);
    if (flag === false) return undefined;
    return flag === true ? reason : `${column} must be true or false.`;
  };
}

function unlessFalse(reason: string) {
  return (value: unknown) => (toBoolean(value) === false ? undefined : reason);
}
