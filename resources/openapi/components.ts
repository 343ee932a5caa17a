import type { z } from "zod";
import { type JsonSchema, toJsonSchemas } from "./json-schema.ts";
import type { Operation } from "./operation.ts";

/** JSON Schemas by name. */
export type Schemas = Record<string, JsonSchema>;

const SCHEMAS = "#/components/schemas/";

/**
 * Collects the schemas of the document: request bodies as input, and response bodies and webhook payloads as output. Each
 * is named by its title, and other schemas that contain it refer to it by that name.
 * @throws TypeError for a body without a title
 */
export function schemasOf(operations: readonly Operation[], others: readonly z.ZodType[]) {
  const requests = new Set(operations.flatMap(({ body }) => body ?? []));
  const responses = new Set([
    ...operations.flatMap((operation) =>
      Object.values(operation.responses).flatMap(({ body }) => body ?? []),
    ),
    ...others,
  ]);
  const components: Schemas = { ...convert(responses, "output"), ...convert(requests, "input") };
  return { components, refTo: (schema: z.ZodType) => ({ $ref: SCHEMAS + titleOf(schema) }) };
}

function convert(schemas: Iterable<z.ZodType>, io: "input" | "output"): Schemas {
  const named = [...schemas].map((schema): [string, z.ZodType] => [titleOf(schema), schema]);
  return toJsonSchemas(named, io, (name) => SCHEMAS + name);
}

function titleOf(schema: z.ZodType): string {
  const { title } = schema.meta() ?? {};
  if (!title) throw new TypeError("a request or response body requires a title: .meta({ title })");
  return title;
}
