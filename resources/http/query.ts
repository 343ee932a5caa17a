import type { Middleware } from "koa";
import type { z } from "zod";

/**
 * Leaves the query in `ctx.state.query`, its words as the numbers and truth values that the schema asks for. What is no
 * such word stays as it is, for the schema to refuse.
 */
export function readQuery(schema: z.ZodObject): Middleware {
  const kinds = new Map(Object.entries(schema.shape).map(([name, field]) => [name, kindOf(field)]));
  return function convertQuery(ctx, next) {
    const values = Object.entries(ctx.query).map(([name, word]) => [name, convert(word, kinds.get(name))]);
    ctx.state.query = Object.fromEntries(values);
    return next();
  };
}

function convert(word: unknown, kind: string | undefined): unknown {
  if (typeof word !== "string") return word;
  if (kind === "number" && /^\d+$/.test(word)) return Number(word);
  if (kind === "boolean" && (word === "true" || word === "false")) return word === "true";
  return word;
}

/** The type of a field beneath its default and its being optional. */
function kindOf(field: z.core.$ZodType): string {
  const { type, innerType } = field._zod.def as z.core.$ZodTypeDef & { innerType?: z.core.$ZodType };
  return innerType ? kindOf(innerType) : type;
}
