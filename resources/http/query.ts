import type { z } from "zod";
import type { ApiMiddleware } from "./api-context.ts";

/**
 * Sets `ctx.state.query` to the query, with the numbers and booleans of the schema converted from strings. Strings that
 * can't be converted stay as they are and fail validation.
 */
export function readQuery(schema: z.ZodObject): ApiMiddleware {
  const types = new Map(Object.entries(schema.shape).map(([name, field]) => [name, typeOf(field)]));
  return function convertQuery(ctx, next) {
    const values = Object.entries(ctx.query).map(([name, value]) => [name, convert(value, types.get(name))]);
    ctx.state.query = Object.fromEntries(values);
    return next();
  };
}

function convert(value: unknown, type: string | undefined): unknown {
  if (typeof value !== "string") return value;
  if (type === "number" && /^\d+$/.test(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  return value;
}

/** Returns the type of a field, looking through its default and `optional()`. */
function typeOf(field: z.core.$ZodType): string {
  const { type, innerType } = field._zod.def as z.core.$ZodTypeDef & { innerType?: z.core.$ZodType };
  return innerType ? typeOf(innerType) : type;
}
