import { invalidField } from "../../http/validate.ts";
import { parseValue } from "./json-rows.ts";

// Twenty tags of fifty characters, and what a spreadsheet may add.
const LIST_MAX = 5000;

/** Splits a text at its separators, unless it is a JSON array. Of objects, the name counts. */
export function toList(value: unknown, separator: string, field: string): unknown {
  const list = typeof value === "string" && value.startsWith("[") ? (parse(value, field) ?? value) : value;
  if (Array.isArray(list))
    return list.map((item) => (typeof item === "object" ? (item as { name?: unknown } | null)?.name : item));
  if (typeof list === "object") return list;
  const text = String(list);
  if (text.length > LIST_MAX) throw invalidField(field, `must be at most ${LIST_MAX} characters`);
  const parts = text.split(separator);
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}

export function toObject(value: unknown, field: string): unknown {
  return typeof value === "string" ? (parse(value, field) ?? value) : value;
}

function parse(text: string, field: string): unknown {
  try {
    return parseValue(text, field);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

// As programs, databases and spreadsheets write them, also in German and French.
const BOOLEANS = new Map([
  ...["true", "t", "yes", "1", "wahr", "vrai"].map((word) => [word, true] as const),
  ...["false", "f", "no", "0", "falsch", "faux"].map((word) => [word, false] as const),
]);

export function toBoolean(value: unknown): unknown {
  return typeof value === "object" ? value : (BOOLEANS.get(String(value).toLowerCase()) ?? value);
}

/** Converts whole numbers, also those that a database or spreadsheet writes with up to two decimal places. */
export function toNumber(value: unknown): unknown {
  const [, digits] = (typeof value === "string" && /^(\d{1,15})(?:[.,]0{1,2})?$/.exec(value)) || [];
  return digits === undefined ? value : Number(digits);
}

/** A cell that an export keeps spreadsheets from running as a formula, by an apostrophe. */
const ESCAPED_FORMULA =
  /^'+\s*[=+\-@\t\r\u207a\u207c\u208a\u208c\u2a75\u2a76\ufb29\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]/;

export function withoutEscape(text: string): string {
  return ESCAPED_FORMULA.test(text) ? text.slice(1) : text;
}
