import { checkFields } from "../../http/json-body.ts";
import type { Problem } from "../../http/problem.ts";
import { invalidField } from "../../http/validate.ts";
import { RECORD_MAX, TOO_LONG } from "./csv-records.ts";

const DEPTH_MAX = 32;
const FIELDS_MAX = 100;
const ITEMS_MAX = 1000;
const NAMES = new Map([
  [FIELDS_MAX, "fields"],
  [ITEMS_MAX, "items"],
]);
// RFC 8259 §2
const SPACES = " \t\n\r";
const [QUOTE, BACKSLASH, COMMA, BRACE, CLOSING_BRACE, BRACKET, CLOSING_BRACKET] = [...'"\\,{}[]'].map(
  (character) => character.charCodeAt(0),
);

/** The place of a value in a text. `end` is behind it. */
type Span = { start: number; end: number };
/** Yields the rows in the value that begins at `start`; returns where the value ends. */
type Visit = (text: string, start: number, name: string) => Generator<Span, number>;

/**
 * Parses the value of one row or cell, after looking at its shape. @param field that an error names
 * @throws SyntaxError @throws Problem 422 if it is too long, nested too deeply, or has too many fields or items
 */
export function parseValue(text: string, field: string): unknown {
  rejectRest(text, skipValue(text, skipSpace(text, 0), field));
  const value: unknown = JSON.parse(text);
  try {
    checkFields({ [field]: value });
  } catch (error) {
    throw error instanceof SyntaxError ? invalidField(field, "must not have the key __proto__") : error;
  }
  return value;
}

/**
 * Finds the links in an array, in a response of an API, or in an array of responses or arrays, so a file of any size can
 * be parsed row by row. Takes linear time. @throws SyntaxError @throws Problem 422 as above
 */
export function* rowsIn(text: string): Generator<Span> {
  const start = skipSpace(text, 0);
  rejectRest(text, yield* text[start] === "[" ? each(text, start, item) : response(text, start));
}

const item: Visit = (text, start) => (text[start] === "[" ? each(text, start, row) : response(text, start));

function* row(text: string, start: number): Generator<Span, number> {
  const end = skipValue(text, start, "file");
  yield { start, end };
  return end;
}

/** An object without a list is a row itself. Shlink's list is in another object, and YOURLS numbers its links in one. */
function* response(text: string, start: number, isInner = false): Generator<Span, number> {
  let hasList = false;
  const end = yield* each(text, start, function* field(_, at, name) {
    const kind = `${name} ${text[at]}`;
    const isOuter = kind === "shortUrls {" && !isInner;
    if (!isOuter && !["links [", "links {", "data ["].includes(kind)) return skipValue(text, at, "file");
    hasList = true;
    return yield* isOuter ? response(text, at, true) : each(text, at, row);
  });
  if (hasList) return end;
  if (end - start > RECORD_MAX) throw tooLarge("file");
  yield { start, end };
  return end;
}

/** Visits the values of an array or object. */
function* each(text: string, start: number, visit: Visit): Generator<Span, number> {
  const isObject = text[start] === "{";
  const close = isObject ? "}" : "]";
  if (!isObject && text[start] !== "[") return skipValue(text, start, "file");
  let at = skipSpace(text, start + 1);
  if (text[at] === close) return at + 1;
  for (;;) {
    let name = "";
    if (isObject) {
      const end = skipString(text, at, "file");
      name = text.slice(at + 1, end - 1);
      at = skipSpace(text, end);
      if (text[at] !== ":") throw unexpected(text, at);
      at = skipSpace(text, at + 1);
    }
    at = skipSpace(text, yield* visit(text, at, name));
    if (text[at] === close) return at + 1;
    if (text[at] !== ",") throw unexpected(text, at);
    at = skipSpace(text, at + 1);
  }
}

/** Returns the end of a value. What else is wrong inside it, `JSON.parse` finds. */
function skipValue(text: string, start: number, field: string): number {
  const open: { count: number; max: number }[] = []; // arrays with their items, objects with their fields
  for (let at = start; at < text.length; at++) {
    if (at - start > RECORD_MAX) throw tooLarge(field);
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at, field) - 1;
      if (open.length === 0) return at + 1;
    } else if (code === BRACE || code === BRACKET) {
      if (open.push({ count: 1, max: code === BRACE ? FIELDS_MAX : ITEMS_MAX }) > DEPTH_MAX)
        throw invalidField(field, `must not be nested more than ${DEPTH_MAX} levels deep`);
    } else if (code === CLOSING_BRACE || code === CLOSING_BRACKET) {
      if (open.length === 0) return at;
      open.pop();
      if (open.length === 0) return at + 1;
    } else if (code === COMMA) {
      const innermost = open.at(-1);
      if (!innermost) return at;
      const { max } = innermost;
      if (++innermost.count > max)
        throw invalidField(field, `must have at most ${max.toLocaleString("en")} ${NAMES.get(max)}`);
    }
  }
  return text.length;
}

/** Returns the place behind a string. */
function skipString(text: string, start: number, field: string): number {
  if (text.charCodeAt(start) !== QUOTE) throw unexpected(text, start);
  for (let at = start + 1; at < text.length; at++) {
    if (at - start > RECORD_MAX) throw tooLarge(field);
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at++;
  }
  throw unexpected(text, text.length);
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && SPACES.includes(text.charAt(at))) at++;
  return at;
}

function rejectRest(text: string, end: number): void {
  const at = skipSpace(text, end);
  if (at < text.length) throw unexpected(text, at);
}

function tooLarge(field: string): Problem {
  return invalidField(field, TOO_LONG);
}

function unexpected(text: string, at: number): SyntaxError {
  return new SyntaxError(
    at < text.length ? `Unexpected “${text.charAt(at)}” at position ${at}` : "Unexpected end",
  );
}
