import type { z } from "zod";
import { type FieldError, Problem } from "./problem.ts";

/**
 * The value as its schema describes it, or a 422 that names each wrong field with its rule. The code is
 * `invalid_<field>` when one field is wrong and `invalid_request` when several are.
 */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.flatMap(toFieldErrors);
  const fields = new Set(errors.map((error) => error.field.split(/[.[]/, 1)[0]));
  const [field] = fields;
  const code = fields.size === 1 && field ? `invalid_${field}` : "invalid_request";
  const detail = errors
    .map((error) => (error.field ? `${error.field}: ${error.message}` : error.message))
    .join(" ");
  throw new Problem(422, code, detail, { errors });
}

function toFieldErrors(issue: z.core.$ZodIssue): FieldError[] {
  const field = issue.path.map(String).join(".");
  if (issue.code !== "unrecognized_keys") return [{ field, message: asSentence(issue.message) }];
  return issue.keys.map((key) => ({
    field: field ? `${field}.${key}` : key,
    message: "There is no such field.",
  }));
}

function asSentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}
