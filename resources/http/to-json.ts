import { z } from "zod";
import { type CamelCase, camelCase } from "./text.ts";

/** What `toJson` takes: the fields of an object of JSON in camel case, with times as epoch milliseconds. */
type RowOf<Json> = { [Name in keyof Json as CamelCase<Name & string>]: ValueOf<Name, Json[Name]> };
type ValueOf<Name, Value> = Name extends `${string}_at`
  ? number | Extract<Value, null | undefined>
  : Value extends readonly (infer Item extends object)[]
    ? RowOf<Item>[]
    : Value;

/** Returns the fields of a schema from a row, which may have others, too. Times become RFC 3339. */
export function toJson<Schema extends z.ZodObject>(
  { shape }: Schema,
  row: RowOf<z.output<Schema>>,
): z.output<Schema> {
  const json: Record<string, unknown> = {};
  for (const [name, field] of Object.entries<z.ZodType>(shape)) {
    const value = (row as Record<string, unknown>)[camelCase(name)];
    const { element } = field instanceof z.ZodArray ? field : {};
    if (value === undefined) continue;
    if (typeof value === "number" && name.endsWith("_at")) json[name] = toTimestamp(value);
    else if (element instanceof z.ZodObject)
      json[name] = (value as never[]).map((one) => toJson(element, one));
    else json[name] = value;
  }
  return json as z.output<Schema>;
}

/** Converts epoch milliseconds to RFC 3339. */
export function toTimestamp(at: number): string;
export function toTimestamp(at: number | null): string | null;
export function toTimestamp(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
