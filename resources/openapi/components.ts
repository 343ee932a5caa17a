import type { z } from "zod";
import { type JsonSchema, toJsonSchemas } from "./json-schema.ts";
import type { Operation } from "./operation.ts";

/** JSON Schemas by name. */
export type Schemas = Record<string, JsonSchema>;

const PLACE = "#/components/schemas/";

/**
 * The components of the document: every body as what may be sent, every answer, and what is sent of our own accord. Each is named by the
 * title of its schema, and stands by that name wherever it is part of another one.
 */
export function schemasOf(operations: readonly Operation[], others: readonly z.ZodType[]) {
  const sent = new Set(operations.flatMap(({ body }) => body ?? []));
  const answered = new Set([
    ...operations.flatMap(({ answers }) => Object.values(answers).flatMap(({ body }) => body ?? [])),
    ...others,
  ]);
  const components: Schemas = { ...convert(answered, "output"), ...convert(sent, "input") };
  return { components, refTo: (schema: z.ZodType) => ({ $ref: PLACE + titleOf(schema) }) };
}

function convert(schemas: Iterable<z.ZodType>, io: "input" | "output"): Schemas {
  const named = [...schemas].map((schema): [string, z.ZodType] => [titleOf(schema), schema]);
  return toJsonSchemas(named, io, (name) => PLACE + name);
}

function titleOf(schema: z.ZodType): string {
  const { title } = schema.meta() ?? {};
  if (!title) throw new TypeError("a body of the API needs a title: .meta({ title })");
  return title;
}
