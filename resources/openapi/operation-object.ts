import { z } from "zod";
import { REQUEST_HEADERS, type RequestHeader, type ResponseHeader } from "../http/headers.ts";
import { MERGE_PATCH } from "../http/json-body.ts";
import { PROBLEM_CODES, type ProblemCode } from "../http/problem-codes.ts";
import { REPLAYED_ERRORS } from "../idempotency/run-once.ts";
import { type JsonSchema, toJsonSchema } from "./json-schema.ts";
import type { Operation, SuccessResponse } from "./operation.ts";

type Parameter = {
  in: "path" | "query" | "header";
  name: string;
  required: boolean;
  description: string;
  schema: JsonSchema;
};

export type OperationObject = {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: Record<string, string[]>[];
  parameters: Parameter[];
  requestBody?: { required: true; content: Content };
  responses: Record<string, ResponseObject>;
};

export type ResponseObject = { description: string; headers: object; content?: Content };
type Content = Record<string, { schema: object }>;

// Of every response. The first two are absent if rate limits are off.
const COMMON_HEADERS: readonly ResponseHeader[] = ["RateLimit", "RateLimit-Policy", "X-Request-Id"];

const NOT_MODIFIED: SuccessResponse = {
  description: "The resource still has the ETag that you sent.",
  headers: ["ETag"],
};

/** Describes an operation by its declaration. `refTo` refers to the schema of a body. */
export function toOperationObject(
  operation: Operation,
  refTo: (schema: z.ZodType) => { $ref: string },
): OperationObject {
  const { id, method, tag, summary, description, scopes, body, headers = [] } = operation;
  const responses: Operation["responses"] = {
    ...operation.responses,
    ...(headers.includes("If-None-Match") && { 304: NOT_MODIFIED }),
  };
  const replayed: ResponseHeader[] = method === "post" ? ["Idempotency-Replayed"] : [];
  const contentOf = (schema: z.ZodType) => ({ "application/json": { schema: refTo(schema) } });
  const requestOf = (schema: z.ZodType) => ({
    ...contentOf(schema),
    ...(method === "patch" && { [MERGE_PATCH]: { schema: refTo(schema) } }),
  });
  const successes = Object.entries(responses).map(([status, response]): [string, ResponseObject] => [
    status,
    {
      description: response.description,
      headers: refToHeaders([...(response.headers ?? []), ...replayed]),
      ...(response.body && { content: contentOf(response.body) }),
    },
  ]);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description && { description }),
    security: scopes === "open" ? [] : [{ oauth2: [...scopes] }],
    parameters: parametersOf(operation),
    ...(body && { requestBody: { required: true, content: requestOf(body) } }),
    responses: { ...Object.fromEntries(successes), ...errorResponsesOf(operation) },
  };
}

function parametersOf(operation: Operation): Parameter[] {
  const { method, params, query, headers = [] } = operation;
  const names: RequestHeader[] = [...headers];
  if (method === "post") names.push("Idempotency-Key");
  return [...fieldsOf("path", params), ...fieldsOf("query", query), ...headerParameters(names)];
}

/** Describes headers of requests, of which none is required. */
export function headerParameters(names: readonly RequestHeader[]): Parameter[] {
  return names.map((name) => ({
    in: "header",
    name,
    required: false,
    description: REQUEST_HEADERS[name],
    schema: { type: "string" },
  }));
}

/** Refers to the descriptions of response headers. */
export function refToHeaders(names: readonly ResponseHeader[], common = COMMON_HEADERS) {
  return Object.fromEntries(
    [...names, ...common].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
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

export type ErrorCode = { status: number; code: string; meaning: string };

/** The error codes of every operation. */
export const ALWAYS: readonly ProblemCode[] = ["rate_limited", "internal_error", "temporarily_unavailable"];
/** Those of a request with a body. */
export const WITH_BODY: readonly ProblemCode[] = ["invalid_json", "body_too_large", "unsupported_media_type"];
const WITH_TOKEN: ProblemCode[] = [
  "invalid_request",
  "missing_token",
  "invalid_token",
  "invalid_dpop_proof",
  "use_dpop_nonce",
  "organization_suspended",
  "plan_required",
];
const WITH_KEY = ["idempotency_key_in_use", "idempotency_key_reused"] as const;

/** The errors of a request that takes an idempotency key. */
export const KEY_ERRORS: readonly ErrorCode[] = [
  ...WITH_KEY.map((code) => ({ code, ...PROBLEM_CODES[code] })),
  { status: 422, code: "invalid_idempotency_key", meaning: "The `Idempotency-Key` is invalid." },
];

const HEADERS: Record<number, ResponseHeader[]> = {
  400: ["WWW-Authenticate"],
  401: ["WWW-Authenticate", "DPoP-Nonce"],
  403: ["WWW-Authenticate"],
  415: ["Accept-Patch"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};

/** Describes the errors that an operation declares, and those that follow from the rest of its declaration. */
function errorResponsesOf(operation: Operation): Record<string, ResponseObject> {
  return toErrorResponses(errorCodesOf(operation), (status) =>
    refToHeaders(errorHeadersOf(operation, status)),
  );
}

/** Describes errors by their status. */
export function toErrorResponses(
  codes: ErrorCode[],
  headersOf: (status: number) => object,
): Record<string, ResponseObject> {
  const byStatus = Object.groupBy(codes, ({ status }) => status);
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, errors = []]) => [
      status,
      {
        description: errors.map(({ code, meaning }) => `\`${code}\`: ${meaning}`).join("\n\n"),
        headers: headersOf(Number(status)),
        content: { "application/problem+json": { schema: schemaOf(errors) } },
      },
    ]),
  );
}

function errorHeadersOf({ method }: Operation, status: number): ResponseHeader[] {
  if (status === 415 && method !== "patch") return [];
  const headers = HEADERS[status] ?? [];
  if (method !== "post" || !REPLAYED_ERRORS.has(status)) return headers;
  return [...headers, "Idempotency-Replayed", ...(status === 409 ? ["Retry-After" as const] : [])];
}

function errorCodesOf(operation: Operation): ErrorCode[] {
  const { method, scopes, params, query, body, headers = [], errors = [] } = operation;
  const codes = new Set<ProblemCode>([
    ...ALWAYS,
    ...errors,
    // A PUT creates what it doesn't find.
    ...(params && method !== "put" ? ["not_found" as const] : []),
    ...(headers.includes("If-Match") ? ["precondition_failed" as const] : []),
    ...(scopes === "open" ? [] : [...WITH_TOKEN, "insufficient_scope" as const]),
    ...(body ? WITH_BODY : []),
  ]);
  return [
    ...[...codes].map((code) => ({ code, ...PROBLEM_CODES[code] })),
    ...(method === "post" ? KEY_ERRORS : []),
    ...validationCodesOf(query, body),
  ];
}

export function validationCodesOf(...schemas: (z.ZodType | undefined)[]): ErrorCode[] {
  const fields = schemas.flatMap((schema) =>
    schema instanceof z.ZodObject ? Object.keys(schema.shape) : [],
  );
  if (fields.length === 0) return [];
  const errors = [
    ...[...new Set(fields)].map((field) => ({
      code: `invalid_${field}`,
      meaning: `\`${field}\` is invalid.`,
    })),
    { code: "invalid_request", meaning: "Several fields are invalid, or the body isn't an object." },
    { code: "unknown_field", meaning: PROBLEM_CODES.unknown_field.meaning },
  ];
  return errors.map((error) => ({ status: 422, ...error }));
}

function schemaOf(errors: ErrorCode[]) {
  const codes = errors.map(({ code }) => code);
  return { allOf: [{ $ref: "#/components/schemas/Problem" }, { properties: { code: { enum: codes } } }] };
}
