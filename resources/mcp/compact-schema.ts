import type { JsonSchema } from "../openapi/json-schema.ts";

export type Dropped = ReadonlySet<string>;

const NOTES = ["title", "examples", "propertyNames", "writeOnly"];
// A value over a limit is rejected with a message that names the limit, which a model needs only then.
const LIMITS = [
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "maxProperties",
  "minimum",
  "maximum",
  "pattern",
];

export const ARGUMENTS: Dropped = new Set([...NOTES, ...LIMITS]);
/** For arguments that another tool describes: names and types are enough to fill them in. */
export const KNOWN_ARGUMENTS: Dropped = new Set([...ARGUMENTS, "description", "enum", "format"]);
/**
 * For results, which explain themselves: names and types are enough to read and to check them. Values can be added to an
 * enumeration, and a client that still holds an older schema would reject them. Which fields are always there makes no
 * difference to a reader.
 */
export const RESULTS: Dropped = new Set([...KNOWN_ARGUMENTS, "required"]);

// Keywords whose value is a schema, a list of schemas, or schemas by name.
const SCHEMAS = new Set(["items", "additionalProperties"]);
const LISTS = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const MAPS = new Set(["properties", "$defs"]);

/** Validators of several hosts accept one type only. Tools also accept null for a nullable argument. */
const allowsUnions = (dropped: Dropped) => dropped === RESULTS;

/** Removes what is of little use to a model, which holds all schemas. The result matches at least as much. */
export function compactSchema(schema: JsonSchema, dropped: Dropped): JsonSchema {
  const compact = (value: unknown) => compactNested(value as JsonSchema, dropped);
  const merged = mergeAlternatives(schema, dropped);
  const entries = Object.entries(merged).flatMap(([keyword, value]) => {
    const isSchema = SCHEMAS.has(keyword) || MAPS.has(keyword);
    if (isSchema && isEmpty(value) && schema.additionalProperties !== false) return [];
    // What a map may hold is said where it is described.
    if (keyword === "additionalProperties" && value !== false && dropped.has("description")) return [];
    if (dropped.has(keyword) && !isNeeded(keyword, merged)) return [];
    if (keyword === "format" && value === "uri") return []; // the name or the description says so
    if (keyword === "additionalProperties" && hasUnion(value) && !allowsUnions(dropped)) return [];
    if (SCHEMAS.has(keyword) && typeof value === "object") return [[keyword, compact(value)]];
    if (LISTS.has(keyword)) return [[keyword, (value as unknown[]).map(compact)]];
    if (MAPS.has(keyword)) return [[keyword, mapValues(value as object, compact)]];
    return [[keyword, value]];
  });
  return Object.fromEntries(entries);
}

/** Compacts a schema within another one. A result, or another tool, shows what is in small objects, and in lists of them. */
function compactNested(schema: JsonSchema, dropped: Dropped): JsonSchema {
  // Other fields are refused within objects as well, which only the outermost one says.
  if (dropped === ARGUMENTS) return withoutClosing(compactSchema(schema, dropped));
  const { type, items, ...object } = mergeAlternatives(schema, dropped);
  const { properties = {} } = (items ?? object) as JsonSchema;
  const values = Object.values(properties) as JsonSchema[];
  return values.length > 0 && values.every(isPlain)
    ? ({ type } as JsonSchema)
    : withoutClosing(compactSchema(schema, dropped));
}

function withoutClosing({ additionalProperties, ...schema }: JsonSchema): JsonSchema {
  return additionalProperties === false || additionalProperties === undefined
    ? schema
    : { ...schema, additionalProperties };
}

/** Objects of such objects aren't small. */
function isPlain({ properties = {}, items, anyOf = [] }: JsonSchema): boolean {
  const parts = Object.values(properties) as JsonSchema[];
  return !items && parts.every(isLeaf) && anyOf.every((option) => isPlain(option as JsonSchema));
}

function isLeaf({ properties, items }: JsonSchema): boolean {
  return !properties && !items;
}

function hasUnion(value: unknown): boolean {
  return Array.isArray((value as { type?: unknown }).type);
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** Returns whether only this keyword says what an object holds, or which type a value has. */
function isNeeded(keyword: string, { type, additionalProperties }: JsonSchema): boolean {
  if (keyword === "description") return type === "object" && isEmpty(additionalProperties);
  return keyword === "enum" && type === undefined;
}

/** Merges "this or null" into one list of types, or one type, and a choice of constants into one list of values. */
function mergeAlternatives({ anyOf, ...schema }: JsonSchema, dropped: Dropped): JsonSchema {
  if (!anyOf) return schema;
  if (anyOf.every((option) => option.const !== undefined)) {
    const [{ type } = {}] = anyOf;
    const values = anyOf.map((option) => option.const) as NonNullable<JsonSchema["enum"]>;
    return { ...schema, ...(type && { type }), enum: values } as JsonSchema;
  }
  const [first, second, ...others] = anyOf;
  const isNullable =
    typeof first?.type === "string" && (!first.enum || dropped.has("enum")) && second?.type === "null";
  if (!isNullable || others.length > 0) return { ...schema, anyOf };
  if (!allowsUnions(dropped)) return { ...schema, ...first };
  // The other keywords of `first` constrain only values of its type, so null still matches.
  return { ...schema, ...first, type: [first.type, "null"] } as JsonSchema;
}

function mapValues(map: object, convert: (value: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, convert(value)]));
}
