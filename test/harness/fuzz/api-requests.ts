import fc from "fast-check";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import type { OperationObject } from "../../../resources/openapi/operation-object.ts";
import { toHeaders } from "./headers.ts";
import { namedValues, type Objects } from "./objects.ts";
import { ODD_TEXTS, ODD_VALUES } from "./odd-values.ts";

export type ApiRequest = {
  operationId: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
};

/** Returns the generators of requests for the operations of a document, some of which it forbids. They name existing objects. */
export function apiRequests(document: OpenApiDocument): ((objects: Objects) => fc.Arbitrary<ApiRequest>)[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => requestsFor({ path, method, operation, document })),
  );
}

type Described = { path: string; method: string; operation: OperationObject; document: OpenApiDocument };

const requestsFor =
  ({ path, method, operation, document }: Described) =>
  (objects: Objects) => {
    const { operationId, parameters, requestBody } = operation;
    const find = (reference: string) =>
      document.components.schemas[reference.split("/").at(-1) as string] ?? {};
    const named = namedValues(operationId, objects);
    const schema = requestBody?.content["application/json"]?.schema as JsonSchema | undefined;
    // A body can only repeat a path parameter.
    const inPath = parameters.filter((one) => one.in === "path").map(({ name }) => name);
    const inBody = { ...named, ...Object.fromEntries(inPath.map((name) => [name, fc.constant(undefined)])) };

    const requests = (isOdd: boolean) => {
      const { objects: objectsOf } = createGenerator({ find, named }, isOdd);
      const { values } = createGenerator({ find, named: inBody }, isOdd);
      const parametersIn = (place: string) =>
        objectsOf(objectOf(parameters.filter((one) => one.in === place)));
      return fc
        .record({
          params: parametersIn("path"),
          query: parametersIn("query"),
          headers: parametersIn("header"),
          json: schema ? values(schema) : fc.constant(undefined),
        })
        .map(({ params, query, headers, json }) => {
          const body = json === undefined ? undefined : JSON.stringify(json);
          return {
            operationId,
            method: method.toUpperCase(),
            path: withParameters(path, params, query),
            headers: {
              ...(body !== undefined && { "content-type": "application/json" }),
              ...toHeaders(headers),
            },
            ...(body !== undefined && { body }),
          };
        });
    };
    return fc.oneof({ weight: 2, arbitrary: requests(false) }, { weight: 1, arbitrary: requests(true) });
  };

function objectOf(parameters: OperationObject["parameters"]): JsonSchema {
  return {
    type: "object",
    properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  } as JsonSchema;
}

function withParameters(path: string, params: Record<string, unknown>, query: Record<string, unknown>) {
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name) => encode(params[name]));
  // A list becomes a repeated parameter.
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .flatMap(([name, value]) => [value].flat().map((one) => `${encode(name)}=${encode(one)}`));
  return pairs.length > 0 ? `${address}?${pairs.join("&").slice(0, QUERY_MAX)}` : address;
}

// Node rejects more than 16 KB of headers with a 431, and no request reaches the API.
const ENCODED_MAX = 1000;
const QUERY_MAX = 4000;

/** Encodes a text for a URL, unless it starts like an encoded one. */
function encode(value: unknown): string {
  const text = String(value);
  if (/^%.*$/.test(text)) return text;
  return encodeURIComponent(text.toWellFormed()).slice(0, ENCODED_MAX);
}

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
function createGenerator({ find, named }: Vocabulary, isOdd: boolean) {
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

function seldom<T, Odd>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<Odd>): fc.Arbitrary<T | Odd> {
  return fc.oneof({ weight: ODD_ONE_IN - 1, arbitrary: usual }, { weight: 1, arbitrary: odd });
}
