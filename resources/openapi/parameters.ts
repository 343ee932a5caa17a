import type { z } from "zod";
import { type AnswerHeader, REQUEST_HEADERS, type RequestHeader } from "./headers.ts";
import { type JsonSchema, toJsonSchema } from "./json-schema.ts";
import type { Answer, Operation } from "./operation.ts";

/** A parameter in the words of the document. */
export type Parameter = {
  in: "path" | "query" | "header";
  name: string;
  required: boolean;
  description: string;
  schema: JsonSchema;
};

/** What every answer has, but for the first two where limits are off. */
export const EVERYWHERE: readonly AnswerHeader[] = ["RateLimit", "RateLimit-Policy", "X-Request-Id"];

/** What an operation takes beside its body. */
export function parametersOf(operation: Operation): Parameter[] {
  const { method, params, query, headers = [] } = operation;
  const names: RequestHeader[] = [...headers];
  if (method === "post") names.push("Idempotency-Key");
  return [
    ...fieldsOf("path", params),
    ...fieldsOf("query", query),
    ...names.map((name) => ({
      in: "header" as const,
      name,
      required: false,
      description: REQUEST_HEADERS[name],
      schema: { type: "string" as const },
    })),
  ];
}

/** The headers that an answer has, or may have. */
export function headersOf({ method }: Operation, { headers = [] }: Answer) {
  const replayed: AnswerHeader[] = method === "post" ? ["Idempotency-Replayed"] : [];
  return refToHeaders([...headers, ...replayed, ...EVERYWHERE]);
}

/** Headers of an answer, as references into the document. */
export function refToHeaders(names: readonly AnswerHeader[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function fieldsOf(place: "path" | "query", fields: z.ZodObject | undefined): Parameter[] {
  if (!fields) return [];
  const { properties = {}, required = [] } = toJsonSchema(fields, "input");
  return Object.entries(properties as Record<string, JsonSchema>).map(
    ([name, { description = "", ...schema }]) => ({
      in: place,
      name,
      required: required.includes(name),
      description,
      schema,
    }),
  );
}
