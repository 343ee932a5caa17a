import type { z } from "zod";
import { REQUEST_HEADERS, type RequestHeader, type ResponseHeader } from "./headers.ts";
import { type JsonSchema, toJsonSchema } from "./json-schema.ts";
import type { Operation, SuccessResponse } from "./operation.ts";

/** A parameter in the document. */
export type Parameter = {
  in: "path" | "query" | "header";
  name: string;
  required: boolean;
  description: string;
  schema: JsonSchema;
};

/** The headers of every response. The first two are absent if rate limits are off. */
export const COMMON_HEADERS: readonly ResponseHeader[] = ["RateLimit", "RateLimit-Policy", "X-Request-Id"];

/** Lists the path, query and header parameters of an operation. */
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

/** Lists the headers that a response may have. */
export function headersOf({ method }: Operation, { headers = [] }: SuccessResponse) {
  const replayed: ResponseHeader[] = method === "post" ? ["Idempotency-Replayed"] : [];
  return refToHeaders([...headers, ...replayed, ...COMMON_HEADERS]);
}

/** Returns references to the document's descriptions of headers. */
export function refToHeaders(names: readonly ResponseHeader[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function fieldsOf(location: "path" | "query", fields: z.ZodObject | undefined): Parameter[] {
  if (!fields) return [];
  const { properties = {}, required = [] } = toJsonSchema(fields, "input");
  return Object.entries(properties as Record<string, JsonSchema>).map(
    ([name, { description = "", ...schema }]) => ({
      in: location,
      name,
      required: required.includes(name),
      description,
      schema,
    }),
  );
}
