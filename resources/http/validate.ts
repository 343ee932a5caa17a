import type { z } from "zod";
import { type FieldError, Problem } from "./problem.ts";

// Whoever has to correct more begins with these.
const ERRORS_MAX = 20;

/**
 * The value as its schema describes it, or a 422 that names each wrong field, up to twenty, with its rule. The code is
 * `invalid_<field>` when one field is wrong, `invalid_request` when several are, and `unknown_field` when all that is
 * wrong is what does not exist.
 */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { issues } = result.error;
  const errors = firstOf(issues);
  const detail = errors
    .map((error) => (error.field ? `${error.field}: ${error.message}` : error.message))
    .join(" ");
  throw new Problem(422, codeOf(issues), detail, { errors });
}

/** The errors that are told: a body of 1 MB can hold mistakes for an answer of a hundred. */
function firstOf(issues: z.core.$ZodIssue[]): FieldError[] {
  return issues.slice(0, ERRORS_MAX).flatMap(toFieldErrors).slice(0, ERRORS_MAX);
}

function codeOf(issues: z.core.$ZodIssue[]): string {
  const wrong = issues.filter(({ code }) => code !== "unrecognized_keys");
  if (wrong.length === 0) return "unknown_field";
  const fields = new Set(wrong.map(({ path }) => path[0]));
  const [field] = fields;
  const isOne = wrong.length === issues.length && fields.size === 1 && field !== undefined;
  return isOne ? `invalid_${String(field)}` : "invalid_request";
}

function toFieldErrors(issue: z.core.$ZodIssue): FieldError[] {
  const field = issue.path.map(String).join(".");
  if (issue.code !== "unrecognized_keys") return [{ field, message: asSentence(issue.message) }];
  return issue.keys.slice(0, ERRORS_MAX).map((key) => ({
    field: field ? `${field}.${key}` : key,
    message: "There is no such field.",
  }));
}

function asSentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}
