import { z } from "zod";
import { KEPT_REFUSALS } from "../idempotency.ts";
import { PROBLEMS, type ProblemCode } from "../problems.ts";
import type { ResponseObject } from "./document.ts";
import type { AnswerHeader } from "./headers.ts";
import type { Operation } from "./operation.ts";
import { EVERYWHERE, refToHeaders } from "./parameters.ts";

type Refusal = { status: number; code: string; meaning: string };

const ALWAYS: ProblemCode[] = ["rate_limited", "internal_error", "temporarily_unavailable"];
const WITH_TOKEN: ProblemCode[] = ["invalid_request", "missing_token", "invalid_token", "plan_required"];
const WITH_BODY: ProblemCode[] = ["invalid_json", "body_too_large", "unsupported_media_type"];
const WITH_KEY: ProblemCode[] = ["idempotency_key_in_use", "idempotency_key_reused"];

const WRONG_KEY: Refusal = {
  status: 422,
  code: "invalid_idempotency_key",
  meaning: "The `Idempotency-Key` breaks its rule.",
};

const HEADERS: Record<number, AnswerHeader[]> = {
  400: ["WWW-Authenticate"],
  401: ["WWW-Authenticate"],
  403: ["WWW-Authenticate"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};

/** Every refusal of an operation by status: what it declares, and what follows from its token, query and body. */
export function refusalsOf(operation: Operation): Record<string, ResponseObject> {
  const byStatus = Object.groupBy(listOf(operation), ({ status }) => status);
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, refusals = []]) => [
      status,
      {
        description: refusals.map(({ code, meaning }) => `\`${code}\`: ${meaning}`).join("\n\n"),
        headers: refToHeaders([...headersOf(operation, Number(status)), ...EVERYWHERE]),
        content: { "application/problem+json": { schema: schemaOf(refusals) } },
      },
    ]),
  );
}

function headersOf({ method }: Operation, status: number): AnswerHeader[] {
  const headers = HEADERS[status] ?? [];
  if (method !== "post" || !KEPT_REFUSALS.has(status)) return headers;
  return [...headers, "Idempotency-Replayed", ...(status === 409 ? ["Retry-After" as const] : [])];
}

function listOf({ method, scopes, query, body, refusals = [] }: Operation): Refusal[] {
  const codes = new Set<ProblemCode>([
    ...ALWAYS,
    ...refusals,
    ...(scopes === "open" ? [] : [...WITH_TOKEN, "insufficient_scope" as const]),
    ...(body ? WITH_BODY : []),
    ...(method === "post" ? WITH_KEY : []),
  ]);
  return [
    ...[...codes].map((code) => ({ code, ...PROBLEMS[code] })),
    ...(method === "post" ? [WRONG_KEY] : []),
    ...fieldsOf(query, body).map((refusal) => ({ status: 422, ...refusal })),
  ];
}

/** What validation refuses: each field by a code of its own, several by one. */
function fieldsOf(...schemas: (z.ZodType | undefined)[]): Omit<Refusal, "status">[] {
  const fields = schemas.flatMap((schema) =>
    schema instanceof z.ZodObject ? Object.keys(schema.shape) : [],
  );
  if (fields.length === 0) return [];
  return [
    ...[...new Set(fields)].map((field) => ({
      code: `invalid_${field}`,
      meaning: `\`${field}\` breaks its rule.`,
    })),
    { code: "invalid_request", meaning: "Several fields break their rules, or the body is no object." },
    { code: "unknown_field", meaning: PROBLEMS.unknown_field.meaning },
  ];
}

function schemaOf(refusals: Refusal[]) {
  const codes = refusals.map(({ code }) => code);
  return { allOf: [{ $ref: "#/components/schemas/Problem" }, { properties: { code: { enum: codes } } }] };
}
