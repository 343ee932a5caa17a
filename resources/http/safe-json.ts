import { Problem } from "./problem.ts";
import { BODY_MAX } from "./read-body.ts";

/** The most fields of one object. */
const FIELDS_MAX = 100;
// A bulk request of 100 links with all fields has 8,000.
const ENTRIES_MAX = 10_000;

// `TextDecoder` also removes a byte order mark.
const utf8 = new TextDecoder();
const [QUOTE, COMMA, BRACKET, BACKSLASH, BRACE] = Buffer.from('",[\\{');

/**
 * Parses a UTF-8 text as JSON.
 * @throws SyntaxError also for a `__proto__`: copying the object would replace the prototype of the copy
 * @throws Problem 422 for an object with more than 100 fields, and for a text whose many fields and items would take long
 *   to parse
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length > BODY_MAX && hasMoreEntries(bytes, ENTRIES_MAX))
    throw tooMany("", "fields and items", ENTRIES_MAX);
  const body: unknown = JSON.parse(utf8.decode(bytes));
  checkFields(body);
  return body;
}

/** Checks the names and the number of the fields of all objects. @throws SyntaxError or Problem, as `parseJson` */
export function checkFields(body: unknown): void {
  if (!isContainer(body)) return;
  checkObject(body, "");
  for (const field of Object.keys(body)) {
    // Not recursive: JSON can have more levels than the stack.
    const rest = [(body as Record<string, unknown>)[field]].filter(isContainer);
    for (let value = rest.pop(); value; value = rest.pop()) {
      checkObject(value, field);
      for (const child of Object.values(value)) if (isContainer(child)) rest.push(child);
    }
  }
}

/** @param field the top-level field that contains the value */
function checkObject(value: object, field: string): void {
  if (Array.isArray(value)) return;
  if (Object.hasOwn(value, "__proto__")) throw new SyntaxError("a field must not be named __proto__");
  if (Object.keys(value).length > FIELDS_MAX) throw tooMany(field, "fields", FIELDS_MAX);
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Returns whether a text has more fields and items than this, without parsing it. */
function hasMoreEntries(bytes: Uint8Array, max: number): boolean {
  let count = 0;
  let isInString = false;
  for (let index = 0; index < bytes.length && count <= max; index++) {
    const byte = bytes[index];
    if (byte === QUOTE) isInString = !isInString;
    else if (!isInString) count += Number(byte === COMMA || byte === BRACKET || byte === BRACE);
    else if (byte === BACKSLASH) index++;
  }
  return count > max;
}

function tooMany(field: string, what: string, limit: number): Problem {
  const message = `must have at most ${limit.toLocaleString("en-US")} ${what}`;
  const detail = `${field || "The body"} ${message}.`;
  return new Problem(422, "invalid_request", detail, { errors: [{ field, message }] });
}
