import type { z } from "zod";
import { Problem } from "../../http/problem.ts";
import { typeOfField } from "../../http/validate.ts";
import { type Fields, type Format, IMPORTED_FIELDS, plainName } from "./formats.ts";
import { toTime } from "./times.ts";
import { toBoolean, toList, toNumber, toObject } from "./values.ts";

// Fields whose spaces are kept, because two external IDs may differ by them.
const KEPT = new Set(["title", "external_id"]);

/** Returns why a link can't be imported as it is, or undefined. @param row by plain names */
export function refusalOf(row: Fields, { refuses = {} }: Format): string | undefined {
  for (const [column, check] of Object.entries(refuses)) {
    const value = clean(row[plainName(column)]);
    const refusal = value === undefined ? undefined : check(value);
    if (refusal) return refusal;
  }
  return undefined;
}

/**
 * Converts a row to the input of the schema of imported links. A value that can't be converted stays as it is, and
 * `refusal` says so where the schema would not.
 */
export function toInput(
  row: Fields,
  { columns, separator = ",", rules }: Format,
): { input: Fields; refusal?: string } {
  const input: Fields = {};
  const refusals: string[] = [];
  for (const [field, names] of Object.entries(columns)) {
    const read = KEPT.has(field) ? unlessMissing : clean;
    const value = names.map((name) => read(row[plainName(name)])).find((one) => one !== undefined);
    if (value === undefined) continue;
    input[field] = value;
    try {
      input[field] = convert(field, value, separator);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      refusals.push(error.message);
    }
  }
  if (rules) input.rules = rules.convert((column) => clean(row[plainName(column)]));
  const { short_url, ...rest } = input;
  return {
    input: { ...(short_url !== undefined && partsOf(short_url)), ...rest },
    ...(refusals[0] !== undefined && { refusal: refusals[0] }),
  };
}

function unlessMissing(value: unknown): unknown {
  return value === null || value === "" ? undefined : value;
}

/** Returns a trimmed text, another value, or undefined for none. */
function clean(value: unknown): unknown {
  if (Array.isArray(value) && value.length === 0) return undefined;
  return unlessMissing(typeof value === "string" ? value.trim() : value);
}

function convert(field: string, value: unknown, separator: string): unknown {
  if (field === "short_url") return Array.isArray(value) ? value[0] : String(value).split(",", 1)[0]?.trim();
  if (field === "tags") return toList(value, separator, field);
  if (field.endsWith("_at")) return toTime(value);
  switch (typeOfField(IMPORTED_FIELDS[field] as z.ZodType)) {
    case "record":
    case "array": // rules
    case "object":
      return toObject(value, field);
    case "boolean":
      return toBoolean(value);
    case "number":
    case "union": // the status of the redirect
      return toNumber(value);
    default:
      return typeof value === "number" ? String(value) : value;
  }
}

/** Returns the host and the path of a short URL, with or without a scheme. */
function partsOf(shortUrl: unknown): Fields {
  if (typeof shortUrl !== "string") return { slug: shortUrl };
  const url = URL.parse(/^https?:\/\//i.test(shortUrl) ? shortUrl : `https://${shortUrl}`);
  return url ? { domain: url.host, slug: url.pathname.slice(1) } : { slug: shortUrl };
}
