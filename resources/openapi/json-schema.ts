import { z } from "zod";

export type JsonSchema = z.core.JSONSchema.BaseSchema;
type Direction = "input" | "output";

const INTEGER_MAX = Number.MAX_SAFE_INTEGER;

export function toJsonSchema(schema: z.ZodType, io: Direction): JsonSchema {
  const { $schema, ...converted } = z.toJSONSchema(schema, { io, override: simplify(io) });
  return converted;
}

/** Converts several schemas, with references wherever one of them contains another. */
export function toJsonSchemas(
  schemas: Iterable<[name: string, schema: z.ZodType]>,
  io: Direction,
  uri: (name: string) => string,
): Record<string, JsonSchema> {
  const names = z.registry<{ id: string }>();
  for (const [id, schema] of schemas) names.add(schema, { id });
  const converted = z.toJSONSchema(names, { io, uri, override: simplify(io) });
  return Object.fromEntries(
    Object.entries(converted.schemas).map(([name, { $schema, $id, ...schema }]) => [name, schema]),
  );
}

type Converted = { zodSchema: z.core.$ZodType; jsonSchema: JsonSchema };

/** Removes keywords that are of no use to readers, and one that would forbid new fields in responses. */
function simplify(io: Direction) {
  return ({ zodSchema, jsonSchema: schema }: Converted) => {
    // Zod omits the examples of transformed schemas, which could be of either direction; these are of this one.
    const { examples } = z.globalRegistry.get(zodSchema) ?? {};
    if (examples) schema.examples = examples as unknown[];
    // `format` says the same as the pattern, and is readable.
    if (schema.format) delete schema.pattern;
    if (schema.minimum === -INTEGER_MAX) delete schema.minimum;
    if (schema.maximum === INTEGER_MAX) delete schema.maximum;
    if (io === "output" && schema.additionalProperties === false) delete schema.additionalProperties;
  };
}
