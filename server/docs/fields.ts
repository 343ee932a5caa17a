import type { JsonSchema } from "../../resources/openapi/json-schema.ts";
import type { ResponseObject } from "../../resources/openapi/operation-object.ts";
import { tableOf } from "./markdown-writer.ts";

export type Schemas = Record<string, JsonSchema>;

/** A row of a field table: a field, or a field nested in another one. */
export type Field = { name: string; required: boolean; schema: JsonSchema; meaning?: string | undefined };

/** Renders a table of fields with their type, constraints and description. `required` is left out of responses. */
export function fieldTable(fields: Field[], { isResponse = false } = {}): string {
  const note = ({ required }: Field) =>
    required === isResponse ? "" : isResponse ? " *optional*" : " **required**";
  return tableOf(
    ["Field", "Type", "Description"],
    fields.map((field) => [
      `\`${field.name}\`${note(field)}`,
      typeOf(field.schema),
      [field.meaning, constraintsOf(field.schema)].filter(Boolean).join(" "),
    ]),
  );
}

/** Returns the fields of an object, and nested fields under dotted names. */
export function fieldsOf(schema: JsonSchema, schemas: Schemas = {}, prefix = ""): Field[] {
  return Object.entries((schema.properties ?? {}) as Schemas).flatMap(([key, value]) => {
    const name = prefix + key;
    const required = (schema.required ?? []).includes(key);
    const isArray = value.type === "array";
    const inner = resolve((isArray ? (value.items ?? {}) : value) as JsonSchema, schemas);
    return [
      { name, required, schema: value, meaning: value.description },
      ...(inner.properties ? fieldsOf(inner, schemas, `${name}${isArray ? "[]." : "."}`) : []),
    ];
  });
}

/** Returns the object that a schema refers to, or that one of its alternatives is. */
function resolve(schema: JsonSchema, schemas: Schemas): JsonSchema {
  const name = referenceOf(schema);
  if (name) return schemas[name] ?? schema;
  const choice = ((schema.anyOf ?? []) as JsonSchema[]).find((each) => each.$ref || each.properties);
  return choice ? resolve(choice, schemas) : schema;
}

function referenceOf({ $ref }: JsonSchema): string | undefined {
  return $ref?.split("/").at(-1);
}

/** Returns the schema of a JSON body. */
export function schemaOf(content: ResponseObject["content"], schemas: Schemas): JsonSchema | undefined {
  return schemas[referenceOf((content?.["application/json"]?.schema ?? {}) as JsonSchema) ?? ""];
}

/** Returns the first example of a schema. */
export function exampleOf(schema: JsonSchema | undefined): unknown {
  return (schema?.examples as unknown[] | undefined)?.[0];
}

const WORDS: Record<string, string> = { "date-time": "timestamp", uri: "URL" };

function typeOf(schema: JsonSchema): string {
  const reference = referenceOf(schema);
  if (reference) return "object";
  const choices = (schema.anyOf ?? []) as JsonSchema[];
  if (choices.length > 0) return [...new Set(choices.map(typeOf))].join(" or ");
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(", ");
  if (Array.isArray(schema.type)) return schema.type.join(" or ");
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (schema.type === "array") return `array of ${typeOf((schema.items ?? {}) as JsonSchema)}s`;
  return WORDS[schema.format ?? ""] ?? schema.type ?? "any";
}

function constraintsOf(schema: JsonSchema): string {
  const inner = ((schema.anyOf ?? []) as JsonSchema[]).find(({ type }) => type !== "null") ?? schema;
  const { minLength, maxLength, minimum, maximum, minItems, maxItems, pattern } = inner;
  const maxProperties = inner.maxProperties as number | undefined;
  const text = [
    range(minLength, maxLength, "characters"),
    range(minimum, maximum, ""),
    range(minItems, maxItems, "items"),
    range(undefined, maxProperties, "keys"),
    pattern && `matches \`${pattern}\``,
    schema.default !== undefined && `default \`${JSON.stringify(schema.default)}\``,
  ]
    .filter(Boolean)
    .join("; ");
  return text && `*${text.charAt(0).toUpperCase()}${text.slice(1)}.*`;
}

function range(min: number | undefined, max: number | undefined, unit: string): string {
  if (min === undefined && max === undefined) return "";
  const [least, most] = [min, max].map((bound) => bound?.toLocaleString("en"));
  const numbers = most ? (least ? `${least} to ${most}` : `at most ${most}`) : `at least ${least}`;
  return `${numbers} ${unit}`.trim();
}
