import { z } from "zod";

/** A JSON Schema (2020-12), as zod writes it. */
export type JsonSchema = z.core.JSONSchema.BaseSchema;
type Direction = "input" | "output";

const INTEGER_MAX = Number.MAX_SAFE_INTEGER;

/** A schema as JSON Schema: of what may be sent (`input`), or of what is answered. */
export function toJsonSchema(schema: z.ZodType, io: Direction): JsonSchema {
  const { $schema, ...written } = z.toJSONSchema(schema, { io, override: simplify(io) });
  return written;
}

/** Schemas by name, each a reference to the others wherever they are part of it. */
export function toJsonSchemas(
  schemas: Iterable<[name: string, schema: z.ZodType]>,
  io: Direction,
  uri: (name: string) => string,
): Record<string, JsonSchema> {
  const names = z.registry<{ id: string }>();
  for (const [id, schema] of schemas) names.add(schema, { id });
  const written = z.toJSONSchema(names, { io, uri, override: simplify(io) });
  return Object.fromEntries(
    Object.entries(written.schemas).map(([name, { $schema, $id, ...schema }]) => [name, schema]),
  );
}

type Written = { zodSchema: z.core.$ZodType; jsonSchema: JsonSchema };

/** Takes away what says nothing to a reader, and what would keep answers from ever getting a new field. */
function simplify(io: Direction) {
  return ({ zodSchema, jsonSchema: schema }: Written) => {
    // zod leaves the examples of what it transforms out, for they could be of either side; ours are of this one.
    const { examples } = z.globalRegistry.get(zodSchema) ?? {};
    if (examples) schema.examples = examples as unknown[];
    // `format` says it; the pattern is one that nobody can read.
    if (schema.format) delete schema.pattern;
    if (schema.minimum === -INTEGER_MAX) delete schema.minimum;
    if (schema.maximum === INTEGER_MAX) delete schema.maximum;
    if (io === "output" && schema.additionalProperties === false) delete schema.additionalProperties;
  };
}
