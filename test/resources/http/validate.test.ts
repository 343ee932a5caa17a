import test from "ava";
import { z } from "zod";
import type { Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";

const schema = z.strictObject({
  name: z.string().min(2).max(5),
  size: z.int().min(1).max(3),
  kind: z.enum(["a", "b"]),
  tags: z.array(z.string()).max(2).optional(),
  on: z.boolean({ error: "must be on or off" }).optional(),
  nested: z.strictObject({ id: z.string() }).optional(),
});
const valid = { name: "name", size: 1, kind: "a" };

const cases: [name: string, input: unknown, code: string, detail: string][] = [
  ["a missing field", { ...valid, name: undefined }, "invalid_name", "name is required."],
  ["a missing nested field", { ...valid, nested: {} }, "invalid_nested", "nested.id is required."],
  ["a missing body", undefined, "invalid_request", "The body is required."],
  ["a body that is not an object", "text", "invalid_request", "The body must be an object."],
  ["a value of another type", { ...valid, name: 5 }, "invalid_name", "name must be a string."],
  ["a fraction", { ...valid, size: 1.5 }, "invalid_size", "size must be a whole number."],
  ["a number that is too small", { ...valid, size: 0 }, "invalid_size", "size must be at least 1."],
  ["a number that is too large", { ...valid, size: 4 }, "invalid_size", "size must be at most 3."],
  ["a short string", { ...valid, name: "n" }, "invalid_name", "name must have at least 2 characters."],
  ["a long array", { ...valid, tags: ["a", "b", "c"] }, "invalid_tags", "tags must have at most 2 items."],
  ["an item of another type", { ...valid, tags: [5] }, "invalid_tags", "tags.0 must be a string."],
  ["a value that is not in the list", { ...valid, kind: "c" }, "invalid_kind", "kind must be one of a, b."],
  ["a schema's own message", { ...valid, on: 1 }, "invalid_on", "on must be on or off."],
  ["an unknown field", { ...valid, color: "red" }, "unknown_field", "color is not a known field."],
  [
    "several errors",
    { ...valid, size: 0, kind: "c" },
    "invalid_request",
    "size must be at least 1. kind must be one of a, b.",
  ],
];

for (const [name, input, code, detail] of cases) {
  test(`${name} is a 422 ${code}: ${detail}`, (t) => {
    const problem = t.throws<Problem>(() => validate(schema, input));
    t.is(problem?.status, 422);
    t.is(problem?.code, code);
    t.is(problem?.message, detail);
    t.true((problem?.errors?.length ?? 0) > 0);
  });
}

test("at most 20 errors are returned", (t) => {
  const problem = t.throws<Problem>(() =>
    validate(
      z.array(z.string()),
      Array.from({ length: 50 }, (_, n) => n),
    ),
  );
  t.is(problem?.errors?.length, 20);
});
