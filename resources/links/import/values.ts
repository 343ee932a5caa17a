// A number of seconds since 1970 has at most this many digits until the year 2286; more are milliseconds.
const SECONDS_DIGITS = 10;
const ZONE = String.raw`Z|UTC|[+-]\d{2}:?\d{2}`;
const NUMERIC_TIME = new RegExp(
  String.raw`^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)? ?(${ZONE})?)?$`,
  "i",
);
const HAS_MONTH_NAME = /\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b/i;
const HAS_ZONE = new RegExp(`(?:${ZONE}|GMT.*)$`, "i");

/**
 * Converts the usual forms of a time to RFC 3339; a time without a zone is UTC. Others stay as they are: in
 * `01/02/2026`, either number may be the month.
 */
export function toTime(value: unknown): unknown {
  const text = String(value);
  if (/^\d{1,13}$/.test(text)) return fromEpoch(Number(text) * (text.length > SECONDS_DIGITS ? 1 : 1000));
  const [isNumeric, date, minutes = "00:00", seconds = ":00", zone = "Z"] = NUMERIC_TIME.exec(text) ?? [];
  if (isNumeric) return `${date}T${minutes}${seconds}${toOffset(zone)}`;
  if (!HAS_MONTH_NAME.test(text)) return value;
  const at = Date.parse(HAS_ZONE.test(text) ? text : `${text} UTC`);
  return Number.isNaN(at) ? value : fromEpoch(at);
}

function fromEpoch(ms: number): string {
  return new Date(ms).toISOString();
}

/** `+0000` → `+00:00`. */
function toOffset(zone: string): string {
  return /^(z|utc)$/i.test(zone) ? "Z" : zone.replace(/^([+-]\d{2}):?(\d{2})$/, "$1:$2");
}

/** Splits a text at its separators, unless it is a JSON array. Of objects, the name counts. */
export function toList(value: unknown, separator: string): unknown[] {
  const list = typeof value === "string" && value.startsWith("[") ? parse(value) : value;
  if (Array.isArray(list))
    return list.map((item) => (typeof item === "object" ? (item as { name?: unknown } | null)?.name : item));
  const parts = String(value).split(separator);
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}

export function toObject(value: unknown): unknown {
  return typeof value === "string" ? (parse(value) ?? value) : value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const BOOLEANS = new Map([
  ["true", true],
  ["yes", true],
  ["1", true],
  ["false", false],
  ["no", false],
  ["0", false],
]);

export function toBoolean(value: unknown): unknown {
  return BOOLEANS.get(String(value).toLowerCase()) ?? value;
}

export function toNumber(value: unknown): unknown {
  return typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
}

/** A cell that an export keeps spreadsheets from running as a formula, by an apostrophe. */
const ESCAPED_FORMULA = /^'+[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;

export function withoutEscape(text: string): string {
  return ESCAPED_FORMULA.test(text) ? text.slice(1) : text;
}

// What exports of databases write for a missing value.
const NULLS = new Set(["null", "NULL", "\\N"]);

export function withoutNull(text: string): string {
  return NULLS.has(text) ? "" : text;
}
