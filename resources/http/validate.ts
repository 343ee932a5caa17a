import type { Middleware } from "koa";
import { z } from "zod";
import { type FieldError, Problem } from "./problem.ts";

// Enough to start correcting; a body of 1 MB can contain enough errors for a response of 100 MB.
const ERRORS_MAX = 20;

/** @throws Problem 422 `invalid_<field>`, `unknown_field`, or `invalid_request` for several */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value, { error: defaultMessage });
  if (result.success) return result.data;
  const { issues } = result.error;
  const errors = issues
    .slice(0, ERRORS_MAX)
    .flatMap((issue) => toFieldErrors(issue, value))
    .slice(0, ERRORS_MAX);
  throw new Problem(422, codeOf(issues), errors.map(toSentence).join(" "), { errors });
}

/** Returns a 422 for one invalid field. @param message what is wrong with it, such as `must be a string` */
export function invalidField(field: string, message: string, code = `invalid_${field}`): Problem {
  const error = { field, message };
  return new Problem(422, code, toSentence(error), { errors: [error] });
}

/** Builds a string schema from a function that returns an error message; `jsonSchema` describes it to clients. */
export function stringThat(
  validateText: (text: string) => string | undefined,
  jsonSchema: z.core.GlobalMeta,
): z.ZodString {
  return z.string().check(checkText(validateText)).meta(jsonSchema);
}

/** Returns the `check` of a schema from a function that returns an error message. */
export function checkText(validateText: (text: string) => string | undefined): z.core.CheckFn<string> {
  return (context) => {
    const message = validateText(context.value);
    if (message) context.issues.push({ code: "custom", input: context.value, message });
  };
}

function codeOf(issues: z.core.$ZodIssue[]): string {
  const invalid = issues.filter(({ code }) => code !== "unrecognized_keys");
  if (invalid.length === 0) return "unknown_field";
  const fields = new Set(invalid.map(({ path }) => path[0]));
  const [field] = fields;
  const isOne = invalid.length === issues.length && fields.size === 1 && field !== undefined;
  return isOne ? `invalid_${String(field)}` : "invalid_request";
}

function toFieldErrors(issue: z.core.$ZodIssue, value: unknown): FieldError[] {
  const field = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    return issue.keys
      .slice(0, ERRORS_MAX)
      .map((key) => ({ field: field ? `${field}.${key}` : key, message: "is not a known field" }));
  }
  return [{ field, message: isMissing(value, issue.path) ? "is required" : issue.message }];
}

function isMissing(value: unknown, path: PropertyKey[]): boolean {
  return (
    path.reduce<unknown>((part, key) => (part as Record<PropertyKey, unknown>)?.[key], value) === undefined
  );
}

/** Joins a predicate with its subject. A message in sentence case needs no subject. */
function toSentence({ field, message }: FieldError): string {
  if (/^[A-Z]/.test(message)) return field ? `${field}: ${message}` : message;
  return `${field || "The body"} ${message}.`;
}

/** Words the errors of schemas without messages of their own. Messages are predicates: `must be …` or `is …`. */
const defaultMessage: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${TYPES[issue.expected] ?? `of type ${issue.expected}`}`;
    case "invalid_value":
      return `must be one of ${issue.values.join(", ")}`;
    case "invalid_key":
      return issue.issues[0]?.message ?? "is invalid";
    case "too_small":
      return withSize(issue.origin, `at least ${issue.minimum}`);
    case "too_big":
      return withSize(issue.origin, `at most ${issue.maximum}`);
    default:
      return "is invalid";
  }
};

const TYPES: Partial<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};

function withSize(origin: string, size: string): string {
  if (origin === "string") return `must have ${size} characters`;
  return origin === "array" ? `must have ${size} items` : `must be ${size}`;
}

/**
 * Sets `ctx.state.query`, with numbers, booleans and lists of one item converted. Others stay strings, and fail
 * validation. @throws Problem 422 `invalid_<field>` for a list
 */
export function readQuery(schema: z.ZodObject): Middleware {
  const types = new Map(Object.entries(schema.shape).map(([name, field]) => [name, typeOfField(field)]));
  const lists = Object.entries<z.ZodType>(schema.shape).filter(([name]) => types.get(name) === "array");
  return function convertQuery(ctx, next) {
    const values = Object.entries(ctx.query).map(([name, value]) => [name, convert(value, types.get(name))]);
    const query = Object.fromEntries(values);
    for (const [name, field] of lists) validateList(name, field, query[name]);
    ctx.state.query = query;
    return next();
  };
}

/** A repeated parameter has one name, so an invalid item has no other name than the list. */
function validateList(name: string, field: z.ZodType, value: unknown): void {
  const result = field.safeParse(value, { error: defaultMessage });
  const message = result.error?.issues[0]?.message;
  if (message !== undefined) throw invalidField(name, message);
}

function convert(value: unknown, type: string | undefined): unknown {
  if (typeof value !== "string") return value;
  if (type === "array") return [value];
  if (type === "number" && /^\d+$/.test(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  return value;
}

/** Returns the type of a field, such as `boolean`, without its default and whether it may be left out. */
export function typeOfField(field: z.core.$ZodType): string {
  const { type, innerType } = field._zod.def as z.core.$ZodTypeDef & { innerType?: z.core.$ZodType };
  return innerType ? typeOfField(innerType) : type;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
