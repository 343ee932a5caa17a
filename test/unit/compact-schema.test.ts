import test from "ava";
import { ARGUMENTS, compactSchema, KNOWN_ARGUMENTS, RESULTS } from "../../resources/mcp/compact-schema.ts";
import type { JsonSchema } from "../../resources/openapi/json-schema.ts";

const NULLABLE_TEXT: JsonSchema = {
  anyOf: [{ type: "string", maxLength: 5, format: "uri" }, { type: "null" }],
  description: "A text.",
};
const KNOWN: JsonSchema = { type: "string", description: "D.", enum: ["a"] };
const CLOSED: JsonSchema = { type: "object", properties: {}, additionalProperties: false };
const LIST: JsonSchema = { type: "array", items: { type: "object", properties: { a: { type: "string" } } } };

const LONG = { ...KNOWN, title: "T", examples: ["a"], minLength: 1, pattern: "a" };
const TEXT: JsonSchema = { type: "string" };
const TIME: JsonSchema = { type: "string", format: "date-time" };
const DESCRIBED: JsonSchema = { ...KNOWN, ...TIME };
const CONSTANTS: JsonSchema = { anyOf: [301, 302].map((value) => ({ type: "number", const: value })) };
const PLAIN: JsonSchema = { type: "string" };
const OPEN: JsonSchema = { type: "object", properties: { a: PLAIN } };
const OBJECT: JsonSchema = { ...OPEN, additionalProperties: false };
const SMALL: JsonSchema = { type: "object" };
const objectOf = (list: JsonSchema): JsonSchema => ({ type: "object", properties: { list } });

const CASES: [what: string, schema: JsonSchema, kind: typeof RESULTS, compact: JsonSchema][] = [
  ["descriptions and values of arguments stay, without limits, titles and examples", LONG, ARGUMENTS, KNOWN],
  ["arguments that another tool describes have names and types", DESCRIBED, KNOWN_ARGUMENTS, TEXT],
  ["also those with a choice of constants", CONSTANTS, KNOWN_ARGUMENTS, { type: "number" }],
  ["what is in small objects is described once", objectOf(OBJECT), KNOWN_ARGUMENTS, objectOf(SMALL)],
  [
    "where it is described, it is, but not that others are forbidden",
    objectOf(OBJECT),
    ARGUMENTS,
    objectOf(OPEN),
  ],
  ["objects in small objects are small as well", objectOf(objectOf(OPEN)), RESULTS, objectOf(SMALL)],
  ["the format of a time stays", TIME, ARGUMENTS, TIME],
  ["a nullable argument has one type", NULLABLE_TEXT, ARGUMENTS, { ...TEXT, description: "A text." }],
  ["a nullable result has both types", NULLABLE_TEXT, RESULTS, { type: ["string", "null"] as never }],
  ["a choice of constants is a list of values", CONSTANTS, ARGUMENTS, { type: "number", enum: [301, 302] }],
  ["arguments that aren't known stay forbidden", CLOSED, ARGUMENTS, CLOSED],
  ["a result doesn't say which fields are required", { ...OBJECT, required: ["a"] }, RESULTS, OBJECT],
  ["a result isn't described in its small objects", objectOf(LIST), RESULTS, objectOf({ type: "array" })],
];
for (const [what, schema, kind, compact] of CASES)
  test(what, (t) => t.deepEqual(compactSchema(schema, kind), compact));
