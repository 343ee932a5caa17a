import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import { table } from "../dashboard/table.ts";
import { type Html, html } from "../html.ts";
import { prose } from "./prose.ts";

/** One line of a table: a field, or one within a field. */
export type Field = {
  name: string;
  required: boolean;
  schema: JsonSchema;
  meaning?: string | undefined;
  /** Where it goes, if not into the body. */
  place?: string;
};

/** A table of fields, each with its type, its rule and its meaning. */
export function fieldTable(caption: string, fields: Field[]): Html {
  return table<Field>(
    caption,
    [
      { head: "Field", cell: ({ name, required, place }) => nameOf(name, required, place) },
      { head: "Type", cell: ({ schema }) => html`<div>${typeOf(schema)}</div>` },
      { head: "Meaning", cell: ({ schema, meaning }) => meaningOf(schema, meaning) },
    ],
    fields,
  );
}

/** The fields of an object, and those of the objects within it under dotted names. */
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

/** The name of the schema that a reference leads to. */
export function referenceOf({ $ref }: JsonSchema): string | undefined {
  return $ref?.split("/").at(-1);
}

/** The address on the page of a schema of the document. */
export function schemaLink(name: string): Html {
  return html`<a href="#${name}">${name}</a>`;
}

function nameOf(name: string, required: boolean, place = ""): Html {
  const notes = [place, required && "required"].filter(Boolean).join(", ");
  // A long name may break after a dot, and nowhere else.
  const steps = name.split(".").map((step, index) => (index ? html`.<wbr>${step}` : step));
  return html`<div><code class="name">${steps}</code>${notes ? html` <small>${notes}</small>` : html``}</div>`;
}

function meaningOf(schema: JsonSchema, meaning = ""): Html {
  const rules = rulesOf(schema);
  return html`<div>${prose(meaning)}${rules ? html` <small>${rules}</small>` : html``}</div>`;
}

/** A type in words. */
function typeOf(schema: JsonSchema): Html {
  const reference = referenceOf(schema);
  if (reference) return schemaLink(reference);
  const choices = (schema.anyOf ?? []) as JsonSchema[];
  if (choices.length > 0) return join(choices.map(typeOf), " or ");
  if (Array.isArray(schema.type)) return html`${schema.type.join(" or ")}`;
  if (schema.enum)
    return join(
      schema.enum.map((value) => html`<code>${value}</code>`),
      ", ",
    );
  if (schema.const !== undefined) return html`<code>${schema.const}</code>`;
  if (schema.type === "array") return html`list: ${typeOf((schema.items ?? {}) as JsonSchema)}`;
  return html`${WORDS[schema.format ?? ""] ?? WORDS[schema.type ?? ""] ?? schema.type ?? "anything"}`;
}

const WORDS: Record<string, string> = {
  "date-time": "time (RFC 3339)",
  date: "date",
  uri: "URL",
  integer: "whole number",
};

/** What the schema says beyond the type. */
function rulesOf(schema: JsonSchema): string {
  const inner = ((schema.anyOf ?? []) as JsonSchema[]).find(({ type }) => type !== "null") ?? schema;
  const { minLength, maxLength, minimum, maximum, minItems, maxItems, pattern } = inner;
  const maxProperties = inner.maxProperties as number | undefined;
  return [
    range(minLength, maxLength, "characters"),
    range(minimum, maximum, ""),
    range(minItems, maxItems, "items"),
    range(undefined, maxProperties, "keys"),
    pattern && `matches ${pattern}`,
    schema.default !== undefined && `${JSON.stringify(schema.default)} if absent`,
  ]
    .filter(Boolean)
    .join("; ");
}

function range(from: number | undefined, to: number | undefined, unit: string): string {
  if (from === undefined && to === undefined) return "";
  const [least, most] = [from, to].map((bound) => bound?.toLocaleString("en"));
  const numbers = most ? (least ? `${least} to ${most}` : `at most ${most}`) : `at least ${least}`;
  return `${numbers} ${unit}`.trim();
}

function join(parts: Html[], between: string): Html {
  return html`${parts.map((part, index) => (index ? html`${between}${part}` : part))}`;
}
