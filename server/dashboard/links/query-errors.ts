import type { Problem } from "../../../resources/http/problem.ts";
import { type FieldErrors, splitFieldErrors } from "../responses.ts";

/**
 * Splits the errors of a query between its form and the alert above it. The alert names every error if one of them has
 * no field in the form, such as that of an unknown parameter.
 */
export function queryErrors(
  problem: Problem | undefined,
  formFields: string[],
): { error?: string; errors: FieldErrors } {
  const { error, errors } = splitFieldErrors(problem);
  if (!problem || error === undefined) return { errors };
  const isInForm = Object.keys(errors).every((field) => formFields.includes(field));
  return { error: isInForm ? error : problem.message, errors };
}
