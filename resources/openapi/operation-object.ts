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
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, ResponseObject>;
};

export type ResponseObject = { description: string; headers: object; content?: Content };
type Content = Record<string, { schema: object }>;

/** What a document says about an operation. What follows from this is added: 304, and the errors of a body and a key. */
export type DescribedOperation = Pick<Operation, "id" | "summary" | "headers" | "responses"> & {
  tag: string;
  description?: string | undefined;
  security: OperationObject["security"];
  /** In the path. */
  params?: z.ZodObject | undefined;
  query?: z.ZodObject | undefined;
  body?: z.ZodType | undefined;
  isMergePatch?: boolean;
  /** Whether the body may be left out. */
  isBodyOptional?: boolean;
  /** Whether it takes an idempotency key. */
  hasKey: boolean;
  errors: readonly ErrorCode[];
};

/** The headers of every response, and those of errors by status. */
export type HeaderNames = {
  all: readonly ResponseHeader[];
  errors: Partial<Record<number, readonly ResponseHeader[]>>;
};

const HEADERS: HeaderNames = {
  // The first two are absent if rate limits are off.
  all: ["RateLimit", "RateLimit-Policy", "X-Request-Id"],
  errors: {
    400: ["WWW-Authenticate"],
    401: ["WWW-Authenticate", "DPoP-Nonce"],
    403: ["WWW-Authenticate"],
    429: ["Retry-After"],
    503: ["Retry-After"],
  },
};

const NOT_MODIFIED: SuccessResponse = {
  description: "The resource still has the ETag that you sent.",
  headers: ["ETag"],
};

/** Describes an operation of the API by its declaration. */
export function describeOperation(operation: Operation): DescribedOperation {
  const { method, scopes } = operation;
  return {
    ...operation,
    security: scopes === "open" ? [] : [{ oauth2: [...scopes] }],
    isMergePatch: method === "patch",
    errors: errorCodesOf(operation),
  };
}

/** `refTo` refers to the schema of a body. */
export function toOperationObject(
  operation: DescribedOperation,
  refTo: (schema: z.ZodType) => { $ref: string },
  headerNames = HEADERS,
): OperationObject {
  const { id, tag, summary, description, security, params, query, body, headers = [] } = operation;
  const { isMergePatch = false, isBodyOptional = false, hasKey } = operation;
  const responses: Operation["responses"] = {
    ...operation.responses,
    ...(headers.includes("If-None-Match") && { 304: NOT_MODIFIED }),
  };
  const headersOf = (names: readonly ResponseHeader[]) =>
    Object.fromEntries(
      [...names, ...headerNames.all].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
    );
  const contentOf = (schema: z.ZodType) => ({ "application/json": { schema: refTo(schema) } });
  const requestOf = (schema: z.ZodType) => ({
    ...contentOf(schema),
    ...(isMergePatch && { [MERGE_PATCH]: { schema: refTo(schema) } }),
  });
  const successes = Object.entries(responses).map(([status, response]): [string, ResponseObject] => [
    status,
    {
      description: response.description,
      headers: headersOf([
        ...(response.headers ?? []),
        ...(hasKey ? (["Idempotency-Replayed"] as const) : []),
      ]),
      ...(response.body && { content: contentOf(response.body) }),
      ...(response.text && { content: { [response.text]: { schema: { type: "string" } } } }),
    },
  ]);
  const errors = Object.groupBy(allErrorsOf(operation), ({ status }) => status);
  const failures = Object.entries(errors).map(([status, codes = []]): [string, ResponseObject] => [
    status,
    {
      description: codes.map(({ code, meaning }) => `\`${code}\`: ${meaning}`).join("\n\n"),
      headers: headersOf([
        ...(headerNames.errors[Number(status)] ?? []),
        ...headersOfError(Number(status), operation),
      ]),
      content: { "application/problem+json": { schema: schemaOf(codes) } },
    },
  ]);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description && { description }),
    security,
    parameters: [
      ...fieldsOf("path", params),
      ...fieldsOf("query", query),
      ...headerParameters([...headers, ...(hasKey ? (["Idempotency-Key"] as const) : [])]),
    ],
    ...(body && { requestBody: { required: !isBodyOptional, content: requestOf(body) } }),
    responses: Object.fromEntries([...successes, ...failures]),
  };
}

/** None of them is required. */
function headerParameters(names: readonly RequestHeader[]): Parameter[] {
  return names.map((name) => ({
    in: "header",
    name,
    required: false,
    description: REQUEST_HEADERS[name],
    schema: { type: "string" },
  }));
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

const ALWAYS: readonly ProblemCode[] = ["rate_limited", "internal_error", "temporarily_unavailable"];
const WITH_BODY: readonly ProblemCode[] = ["invalid_json", "body_too_large", "unsupported_media_type"];
const WITH_KEY: readonly ProblemCode[] = ["idempotency_key_in_use", "idempotency_key_reused"];
const WITH_TOKEN: readonly ProblemCode[] = [
  "invalid_request",
  "missing_token",
  "invalid_token",
  "invalid_dpop_proof",
  "use_dpop_nonce",
  "organization_suspended",
  "plan_required",
];
const INVALID_KEY = {
  status: 422,
  code: "invalid_idempotency_key",
  meaning: "The `Idempotency-Key` is invalid.",
};

/** Returns the errors of an operation, and those that follow from the rest of its description. */
function allErrorsOf({ errors, query, body, hasKey }: DescribedOperation): ErrorCode[] {
  const all = [
    ...describeCodes(ALWAYS),
    ...errors,
    ...describeCodes([...(body ? WITH_BODY : []), ...(hasKey ? WITH_KEY : [])]),
    ...(hasKey ? [INVALID_KEY] : []),
    ...validationCodesOf(query, body),
  ];
  const byCode = Object.groupBy(all, ({ status, code }) => `${status} ${code}`);
  return Object.values(byCode).flatMap((same = []) => same.slice(0, 1));
}

function describeCodes(codes: readonly ProblemCode[]): ErrorCode[] {
  return codes.map((code) => ({ code, ...PROBLEM_CODES[code] }));
}

function headersOfError(status: number, { isMergePatch, hasKey }: DescribedOperation): ResponseHeader[] {
  if (status === 415 && isMergePatch) return ["Accept-Patch"];
  if (!hasKey || !REPLAYED_ERRORS.has(status)) return [];
  return status === 409 ? ["Idempotency-Replayed", "Retry-After"] : ["Idempotency-Replayed"];
}

function errorCodesOf({ method, scopes, params, headers = [], errors = [] }: Operation): ErrorCode[] {
  return describeCodes([
    ...errors,
    // A PUT creates what it doesn't find.
    ...(params && method !== "put" ? ["not_found" as const] : []),
    ...(headers.includes("If-Match") ? ["precondition_failed" as const] : []),
    ...(scopes === "open" ? [] : [...WITH_TOKEN, "insufficient_scope" as const]),
  ]);
}

function validationCodesOf(...schemas: (z.ZodType | undefined)[]): ErrorCode[] {
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
