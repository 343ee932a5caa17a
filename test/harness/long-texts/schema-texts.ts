import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";

/** A text in a value that a schema describes: the path to it, and the value with it. */
type Place = { path: string; put(text: string): unknown };

const DEPTH_MAX = 6;

/** Returns every place for a text: each scalar, even a number, and each name that callers choose. */
export function placesIn(schema: JsonSchema, find: (reference: string) => JsonSchema, depth = 0): Place[] {
  if (depth > DEPTH_MAX) return [];
  const below = (one: JsonSchema) => placesIn(one, find, depth + 1);
  if (schema.$ref) return below(find(schema.$ref));
  if (schema.anyOf) return (schema.anyOf as JsonSchema[]).flatMap(below);
  if (schema.type === "array")
    return below((schema.items ?? {}) as JsonSchema).map(({ path, put }) => ({
      path: `${path}[]`,
      put: (text) => [put(text)],
    }));
  if (schema.type !== "object") return [{ path: "", put: (text) => text }];
  const { properties = {}, additionalProperties } = schema;
  const base = sampleOf(schema, find) as object;
  const members = Object.entries(properties as Record<string, JsonSchema>).flatMap(([name, member]) =>
    below(member).map(({ path, put }) => ({
      path: `${name}${path && `.${path}`}`,
      put: (text: string) => ({ ...base, [name]: put(text) }),
    })),
  );
  if (typeof additionalProperties !== "object") return members;
  const values = below(additionalProperties as JsonSchema).map(({ path, put }) => ({
    path: `*${path}`,
    put: (text: string) => ({ ...base, name: put(text) }),
  }));
  return [...members, ...values, { path: "* (its key)", put: (text) => ({ ...base, [text]: "x" }) }];
}

function sampleOf(schema: JsonSchema, find: (reference: string) => JsonSchema): unknown {
  if (schema.$ref) return sampleOf(find(schema.$ref), find);
  if (schema.anyOf) return sampleOf((schema.anyOf as JsonSchema[])[0] ?? {}, find);
  if (schema.const !== undefined) return schema.const;
  const [first] = schema.enum ?? (schema.examples as unknown[] | undefined) ?? [];
  if (first !== undefined) return first;
  if (schema.type === "array") return [sampleOf((schema.items ?? {}) as JsonSchema, find)];
  if (schema.type === "boolean") return true;
  if (schema.type === "integer") return schema.minimum ?? 1;
  if (schema.type !== "object") return schema.format === "uri" ? "https://example.com/" : "x";
  const { properties = {}, required = [] } = schema;
  return Object.fromEntries(
    required.map((name) => [name, sampleOf((properties as Record<string, JsonSchema>)[name] ?? {}, find)]),
  );
}
