import { invalidField } from "../../http/validate.ts";
import { linkSchemas } from "../schema.ts";
import { toBoolean, toList, toNumber, toObject, toTime, withoutEscape } from "./values.ts";

export type Fields = Record<string, unknown>;

/** Columns are compared by their letters and digits; of several columns for a field, the first with a value counts. */
export type Format = {
  name: string;
  /** The file has this format if it has all columns of one of these lists. */
  needs: string[][];
  /** By the field of the API. A slug can also be the path of a `short_url`. */
  columns: Record<string, string[]>;
  /** Columns whose links must not be imported, because they would lose what the column says. */
  refuses?: Record<string, string>;
  separator?: string;
  /** What a cell of a CSV file stands for. */
  readCell?(text: string): string;
};

const PROTECTED = "is protected by a password, which links can't be";
const CREATED = ["created_at", "created", "date created", "created date"];

// The names that are reserved make no difference here.
const OWN_FIELDS = Object.keys(linkSchemas({ ownHosts: new Set(), ownWords: new Set() }).imported.shape);

/** In the order in which they are recognized: those with the rarest columns first. */
const FORMATS: Format[] = [
  {
    name: "Shlink",
    needs: [["longUrl", "shortCode"]],
    columns: {
      url: ["longUrl"],
      slug: ["shortCode"],
      title: ["title"],
      tags: ["tags"],
      created_at: ["createdAt", "dateCreated"],
      clicks: ["visitsSummary.nonBots", "visitsSummary.total", "visits", "visitsCount"],
      expires_at: ["meta.validUntil"],
      max_clicks: ["meta.maxVisits"],
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
      url: ["url"],
      slug: ["keyword"],
      short_url: ["shorturl"],
      title: ["title"],
      created_at: ["timestamp"],
      clicks: ["clicks"],
    },
  },
  {
    name: "Kutt",
    needs: [["address", "target"]],
    columns: {
      url: ["target"],
      slug: ["address"],
      title: ["description"],
      created_at: ["created_at"],
      clicks: ["visit_count"],
      expires_at: ["expire_in"],
    },
    refuses: { password: PROTECTED, banned: "is banned" },
  },
  {
    name: "Short.io",
    needs: [
      ["originalURL", "path"],
      ["originalURL", "shortURL"],
    ],
    columns: {
      url: ["originalURL"],
      slug: ["path"],
      short_url: ["secureShortURL", "shortURL"],
      title: ["title"],
      tags: ["tags"],
      created_at: CREATED,
      archived: ["archived"],
      expires_at: ["expiresAt"],
      max_clicks: ["clicksLimit"],
      redirect_type: ["redirectType"],
      fallback_url: ["expiredURL"],
      clicks: ["humanClicks", "clicks", "totalClicks"],
    },
    refuses: { password: PROTECTED, hasPassword: PROTECTED },
  },
  {
    name: "Dub",
    needs: [
      ["Destination URL", "Short link"],
      ["url", "key", "shortLink"],
      ["url", "key", "domain"],
    ],
    columns: {
      url: ["Destination URL", "url"],
      slug: ["key"],
      short_url: ["Short link"],
      title: ["title"],
      tags: ["tags"],
      external_id: ["externalId"],
      created_at: CREATED,
      archived: ["archived"],
      expires_at: ["expiresAt"],
      fallback_url: ["expiredUrl"],
      clicks: ["clicks"],
      last_clicked_at: ["lastClicked"],
    },
    refuses: { password: PROTECTED },
  },
  {
    name: "Bitly",
    needs: [
      ["long_url", "link"],
      ["long_url", "bitlink"],
    ],
    columns: {
      url: ["long_url"],
      short_url: ["custom_bitlinks", "custom_bitlink", "bitlink", "link"],
      title: ["title"],
      tags: ["tags"],
      created_at: CREATED,
      archived: ["archived"],
      clicks: ["total_clicks", "clicks", "total_engagements", "engagements"],
    },
  },
  {
    name: "linkgate",
    needs: [["url"]],
    columns: { ...Object.fromEntries(OWN_FIELDS.map((field) => [field, [field]])), short_url: ["short_url"] },
    refuses: { disabled_at: "was disabled by the operator of its service" },
    readCell: withoutEscape,
  },
];

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
  const found = columns.filter(Boolean).slice(0, 30).join(", ") || "none";
  const known = FORMATS.map(
    ({ name, needs }) => `${name} (${needs.map((list) => list.join(" and ")).join(", or ")})`,
  );
  throw invalidField(
    "file",
    `must have the columns of a known format. Found: ${found}. Needed: ${known.reverse().join("; ")}`,
  );
}

/** Returns why a link can't be imported as it is, or undefined. @param row by plain names */
export function refusalOf(row: Fields, { refuses = {} }: Format): string | undefined {
  const found = Object.entries(refuses).find(([column]) => isSet(row[plainName(column)]));
  return found && `The link ${found[1]}.`;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && !["", "false", "0"].includes(String(value));
}

/** Converts a row to the input of the schema of imported links; a value that can't be converted stays as it is. */
export function toInput(row: Fields, { columns, separator = "," }: Format): Fields {
  const input: Fields = {};
  for (const [field, names] of Object.entries(columns)) {
    const value = names.map((name) => clean(row[plainName(name)])).find((one) => one !== undefined);
    if (value !== undefined) input[field] = convert(field, value, separator);
  }
  const { short_url, ...rest } = input;
  const slug = rest.slug ?? (short_url !== undefined ? slugIn(String(short_url)) : undefined);
  return { ...rest, ...(slug !== undefined && { slug: String(slug) }) };
}

/** Returns a trimmed text, another value, or undefined for none. */
function clean(value: unknown): unknown {
  if (value === null || (Array.isArray(value) && value.length === 0)) return undefined;
  return typeof value === "string" ? value.trim() || undefined : value;
}

function convert(field: string, value: unknown, separator: string): unknown {
  switch (field) {
    case "tags":
      return toList(value, separator);
    case "metadata":
      return toObject(value);
    case "archived":
      return toBoolean(value);
    case "max_clicks":
    case "redirect_type":
    case "clicks":
    case "bot_clicks":
      return toNumber(value);
    case "created_at":
    case "expires_at":
    case "last_clicked_at":
      return toTime(value);
    case "short_url":
      return toList(value, ",")[0];
    default:
      return typeof value === "number" ? String(value) : value;
  }
}

/** Returns the path of a short URL, with or without a scheme. */
function slugIn(shortUrl: string): string {
  const url = URL.parse(/^https?:\/\//i.test(shortUrl) ? shortUrl : `https://${shortUrl}`);
  return url ? url.pathname.slice(1) : shortUrl;
}
