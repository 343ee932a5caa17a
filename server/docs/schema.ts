import type { JsonSchema } from "../../resources/openapi/json-schema.ts";
import { type Html, html } from "../ui/html.ts";
import { table } from "../ui/table.ts";
import { prose } from "./prose.ts";

/** A row of a field table: a field, or a field nested in another one. */
export type Field = {
  name: string;
  required: boolean;
  schema: JsonSchema;
  meaning?: string | undefined;
  /** Where it is sent, unless in the body. */
  place?: string;
};

/** Renders a table of fields with their type, constraints and description. */
export function fieldTable(caption: string, fields: Field[]): Html {
  return table<Field>(
    caption,
    {
      Field: ({ name, required, place }) => nameOf(name, required, place),
      Type: ({ schema }) => html`<div>${typeOf(schema)}</div>`,
      Description: ({ schema, meaning }) => meaningOf(schema, meaning),
    },
    fields,
  );
}

/** Returns the fields of an object, and nested fields under dotted names. */
export function fieldsOf(schema: JsonSchema, prefix = ""): Field[] {
  return Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).flatMap(([key, value]) => {
    const name = prefix + key;
    const required = (schema.required ?? []).includes(key);
    const inner = value.type === "array" ? ((value.items ?? {}) as JsonSchema) : value;
    const suffix = value.type === "array" ? "[]." : ".";
    return [
      { name, required, schema: value, meaning: value.description },
      ...(inner.properties ? fieldsOf(inner, name + suffix) : []),
    ];
  });
}

/** Returns the name of the schema that a `$ref` points to. */
export function referenceOf({ $ref }: JsonSchema): string | undefined {
  return $ref?.split("/").at(-1);
}

/** Renders a link to a schema's entry on the page. */
export function schemaLink(name: string): Html {
  return html`<a href="#${name}">${name}</a>`;
}

function nameOf(name: string, required: boolean, place = ""): Html {
  const notes = [place, required && "required"].filter(Boolean).join(", ");
  // Long names wrap after a dot only.
  const parts = name.split(".").map((part, index) => (index ? html`.<wbr>${part}` : part));
  return html`<div><code class="name">${parts}</code>${notes && html` <small>${notes}</small>`}</div>`;
}

function meaningOf(schema: JsonSchema, meaning = ""): Html {
  const constraints = constraintsOf(schema);
  return html`<div>${prose(meaning)}${constraints && html` <small>${constraints}</small>`}</div>`;
}

/** Returns the display name of a type. */
function typeOf(schema: JsonSchema): Html {
  const reference = referenceOf(schema);
  if (reference) return schemaLink(reference);
  const choices = (schema.anyOf ?? []) as JsonSchema[];
  if (choices.length > 0) return join(choices.map(typeOf), " or ");
  if (Array.isArray(schema.type)) return html`${schema.type.join(" or ")}`;
  if (schema.enum)
    return join(
      schema.enum.map((value) => html`<code>${String(value)}</code>`),
      ", ",
    );
  if (schema.const !== undefined) return html`<code>${String(schema.const)}</code>`;
  if (schema.type === "array") return html`array of ${typeOf((schema.items ?? {}) as JsonSchema)}`;
  return html`${WORDS[schema.format ?? ""] ?? WORDS[schema.type ?? ""] ?? schema.type ?? "any"}`;
}

const WORDS: Record<string, string> = {
  "date-time": "timestamp",
  date: "date",
  uri: "URL",
  integer: "integer",
};

/** Returns the constraints of a schema beyond its type. */
function constraintsOf(schema: JsonSchema): string {
  const inner = ((schema.anyOf ?? []) as JsonSchema[]).find(({ type }) => type !== "null") ?? schema;
  const { minLength, maxLength, minimum, maximum, minItems, maxItems, pattern } = inner;
  const maxProperties = inner.maxProperties as number | undefined;
  return [
    range(minLength, maxLength, "characters"),
    range(minimum, maximum, ""),
    range(minItems, maxItems, "items"),
    range(undefined, maxProperties, "keys"),
    pattern && `matches ${pattern}`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ]
    .filter(Boolean)
    .join("; ");
}

function range(min: number | undefined, max: number | undefined, unit: string): string {
  if (min === undefined && max === undefined) return "";
  const [least, most] = [min, max].map((bound) => bound?.toLocaleString("en"));
  const numbers = most ? (least ? `${least} to ${most}` : `at most ${most}`) : `at least ${least}`;
  return `${numbers} ${unit}`.trim();
}

function join(parts: Html[], separator: string): Html {
  return html`${parts.map((part, index) => (index ? html`${separator}${part}` : part))}`;
}
