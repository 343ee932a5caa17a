import { z } from "zod";
import { PROBLEM_CODES, type ProblemCode } from "../http/problem-codes.ts";
import { REPLAYED_ERRORS } from "../idempotency/run-once.ts";
import type { ResponseHeader } from "./headers.ts";
import type { Operation } from "./operation.ts";
import { COMMON_HEADERS, refToHeaders } from "./parameters.ts";

export type ResponseObject = { description: string; headers: object; content?: Content };
export type Content = Record<string, { schema: object }>;

type ErrorCode = { status: number; code: string; meaning: string };

const ALWAYS: ProblemCode[] = ["rate_limited", "internal_error", "temporarily_unavailable"];
const WITH_TOKEN: ProblemCode[] = [
  "invalid_request",
  "missing_token",
  "invalid_token",
  "invalid_dpop_proof",
  "use_dpop_nonce",
  "organization_suspended",
  "plan_required",
];
const WITH_BODY: ProblemCode[] = ["invalid_json", "body_too_large", "unsupported_media_type"];
const WITH_KEY: ProblemCode[] = ["idempotency_key_in_use", "idempotency_key_reused"];

const INVALID_KEY: ErrorCode = {
  status: 422,
  code: "invalid_idempotency_key",
  meaning: "The `Idempotency-Key` is invalid.",
};

const HEADERS: Record<number, ResponseHeader[]> = {
  400: ["WWW-Authenticate"],
  401: ["WWW-Authenticate", "DPoP-Nonce"],
  403: ["WWW-Authenticate"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};

/** Describes the errors of an operation by status: those it declares, and those of its token, query and body. */
export function errorResponsesOf(operation: Operation): Record<string, ResponseObject> {
  const byStatus = Object.groupBy(errorCodesOf(operation), ({ status }) => status);
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, errors = []]) => [
      status,
      {
        description: errors.map(({ code, meaning }) => `\`${code}\`: ${meaning}`).join("\n\n"),
        headers: refToHeaders([...headersOf(operation, Number(status)), ...COMMON_HEADERS]),
        content: { "application/problem+json": { schema: schemaOf(errors) } },
      },
    ]),
  );
}

function headersOf({ method }: Operation, status: number): ResponseHeader[] {
  const headers = HEADERS[status] ?? [];
  if (method !== "post" || !REPLAYED_ERRORS.has(status)) return headers;
  return [...headers, "Idempotency-Replayed", ...(status === 409 ? ["Retry-After" as const] : [])];
}

function errorCodesOf({ method, scopes, query, body, errors = [] }: Operation): ErrorCode[] {
  const codes = new Set<ProblemCode>([
    ...ALWAYS,
    ...errors,
    ...(scopes === "open" ? [] : [...WITH_TOKEN, "insufficient_scope" as const]),
    ...(body ? WITH_BODY : []),
    ...(method === "post" ? WITH_KEY : []),
  ]);
  return [
    ...[...codes].map((code) => ({ code, ...PROBLEM_CODES[code] })),
    ...(method === "post" ? [INVALID_KEY] : []),
    ...validationCodesOf(query, body).map((error) => ({ status: 422, ...error })),
  ];
}

/** Lists the codes of validation: one per field, and one for several fields. */
function validationCodesOf(...schemas: (z.ZodType | undefined)[]): Omit<ErrorCode, "status">[] {
  const fields = schemas.flatMap((schema) =>
    schema instanceof z.ZodObject ? Object.keys(schema.shape) : [],
  );
  if (fields.length === 0) return [];
  return [
    ...[...new Set(fields)].map((field) => ({
      code: `invalid_${field}`,
      meaning: `\`${field}\` is invalid.`,
    })),
    { code: "invalid_request", meaning: "Several fields are invalid, or the body isn't an object." },
    { code: "unknown_field", meaning: PROBLEM_CODES.unknown_field.meaning },
  ];
}

function schemaOf(errors: ErrorCode[]) {
  const codes = errors.map(({ code }) => code);
  return { allOf: [{ $ref: "#/components/schemas/Problem" }, { properties: { code: { enum: codes } } }] };
}
