import fc from "fast-check";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import { ODD_TEXTS, ODD_VALUES } from "./odd-values.ts";

type Vocabulary = {
  find?(reference: string): JsonSchema;
  /** Values by the names of their members, where few of those that the schema allows are accepted. */
  named: Record<string, fc.Arbitrary<unknown>>;
};

type Schemas = Record<string, JsonSchema>;
type Members = Record<string, fc.Arbitrary<unknown>>;

// Of the values in an object, about one in this many is odd.
const ODD_ONE_IN = 15;
const NAMED_WEIGHT = 9;
const TEXT_MAX = 40;
const ITEMS_MAX = 4;
const UNDOCUMENTED = ["id", "clicks", ...ODD_TEXTS];

/** Creates a generator of what schemas allow, with few exceptions. With `isOdd`, any part may be one that they forbid. */
export function createGenerator({ find, named }: Vocabulary, isOdd: boolean) {
  const values = (schema: JsonSchema): fc.Arbitrary<unknown> =>
    isOdd ? seldom(likely(schema), fc.constantFrom(...ODD_VALUES)) : likely(schema);

  function likely(schema: JsonSchema): fc.Arbitrary<unknown> {
    if (schema.$ref) return likely(find?.(schema.$ref) ?? {});
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    if (schema.anyOf) return fc.oneof(...(schema.anyOf as JsonSchema[]).map(likely));
    return fc.oneof(...[schema.type ?? "null"].flat().map((type) => BY_TYPE[type](schema)));
  }

  /** Like `values`, but always objects. Their members may be anything. */
  function objects(schema: JsonSchema): fc.Arbitrary<Record<string, unknown>> {
    const { properties = {}, required = [], additionalProperties } = schema;
    if (typeof additionalProperties === "object") return dictionaries(schema);
    const members: Members = Object.fromEntries(
      Object.entries(properties as Schemas).map(([name, member]) => [name, membersNamed(name, member)]),
    );
    const whole = fc.record(members, { requiredKeys: required, noNullPrototype: true });
    if (!isOdd) return whole;
    const partial = fc.record(members, { requiredKeys: [], noNullPrototype: true });
    const more = fc
      .tuple(whole, fc.constantFrom(...UNDOCUMENTED), fc.constantFrom(...ODD_VALUES))
      .map(([object, name, value]) => ({ ...object, [name]: value }));
    return seldom(whole, fc.oneof(partial, more));
  }

  function membersNamed(name: string, schema: JsonSchema): fc.Arbitrary<unknown> {
    if (!named[name]) return values(schema);
    return fc.oneof(
      { weight: NAMED_WEIGHT, arbitrary: named[name] },
      { weight: 1, arbitrary: values(schema) },
    );
  }

  function dictionaries({ propertyNames = { type: "string" }, additionalProperties }: JsonSchema) {
    const names = likely(propertyNames as JsonSchema) as fc.Arbitrary<string>;
    return fc.dictionary(names, values(additionalProperties as JsonSchema), {
      maxKeys: ITEMS_MAX,
      noNullPrototype: true,
    });
  }

  const BY_TYPE: Record<
    Exclude<JsonSchema["type"], undefined | unknown[]>,
    (schema: JsonSchema) => fc.Arbitrary<unknown>
  > = {
    object: objects,
    string: texts,
    boolean: () => fc.boolean(),
    null: () => fc.constant(null),
    integer: ({ minimum: min, maximum: max }) =>
      fc.integer({ ...(min !== undefined && { min }), ...(max !== undefined && { max }) }),
    number: () => fc.double({ noNaN: true, noDefaultInfinity: true }),
    array: ({ items = {}, minItems = 0 }) =>
      fc.array(values(items as JsonSchema), { minLength: minItems, maxLength: minItems + ITEMS_MAX }),
  };

  return { values, objects };
}

function texts({ format, pattern, minLength = 0, maxLength = TEXT_MAX }: JsonSchema): fc.Arbitrary<string> {
  if (format === "date") return dates.map((date) => date.toISOString().slice(0, 10));
  if (format === "date-time") return dates.map((date) => date.toISOString());
  if (pattern) return fc.stringMatching(new RegExp(pattern));
  const longest = "x".repeat(maxLength);
  const text = fc.string({ unit: "grapheme", minLength, maxLength: Math.min(maxLength, TEXT_MAX) });
  return seldom(text, fc.constantFrom(longest, `${longest}x`, ...ODD_TEXTS));
}

const dates = fc.date({ min: new Date("1969-12-31"), max: new Date("9999-12-31"), noInvalidDate: true });

export function seldom<T, Odd>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<Odd>): fc.Arbitrary<T | Odd> {
  return fc.oneof({ weight: ODD_ONE_IN - 1, arbitrary: usual }, { weight: 1, arbitrary: odd });
}
