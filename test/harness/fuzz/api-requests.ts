import fc from "fast-check";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import type { OperationObject } from "../../../resources/openapi/operation-object.ts";
import { toHeaders } from "./headers.ts";
import { ODD_TEXTS } from "./odd-values.ts";
import { createGenerator, seldom } from "./schema-values.ts";
import { vocabularyOf } from "./vocabulary.ts";

/** A request that may contain references to known objects. */
export type ApiRequest = {
  /** The operation that it was generated for. */
  operationId: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
};

/** Generates requests for the operations of a document, some of which it forbids. */
export function apiRequests(document: OpenApiDocument): fc.Arbitrary<ApiRequest> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => requestsFor({ path, method, operation, document })),
  );
  return fc.oneof(...operations, unknownOperations);
}

type Described = { path: string; method: string; operation: OperationObject; document: OpenApiDocument };

function requestsFor({ path, method, operation, document }: Described): fc.Arbitrary<ApiRequest> {
  const { operationId, parameters, requestBody } = operation;
  const find = (reference: string) =>
    document.components.schemas[reference.split("/").at(-1) as string] ?? {};
  const vocabulary = vocabularyOf(operationId, find);
  const schema = requestBody?.content["application/json"]?.schema as JsonSchema | undefined;

  // A body can only repeat a path parameter.
  const inPath = parameters
    .filter((one) => one.in === "path")
    .map(({ name }) => [name, fc.constant(undefined)]);
  const named: Record<string, fc.Arbitrary<unknown>> = Object.fromEntries(inPath);

  const requests = (isOdd: boolean) => {
    const { objects } = createGenerator(vocabulary, isOdd);
    const { values } = createGenerator({ ...vocabulary, named: { ...vocabulary.named, ...named } }, isOdd);
    const oddly = <T>(usual: T, odd: fc.Arbitrary<T>) =>
      isOdd ? seldom(fc.constant(usual), odd) : fc.constant(usual);
    const parametersIn = (place: string) => objects(objectOf(parameters.filter((one) => one.in === place)));
    return fc
      .record({
        params: parametersIn("path"),
        query: parametersIn("query"),
        headers: parametersIn("header"),
        isHead: oddly(false, fc.constant(method === "get")),
        json: schema ? values(schema) : fc.constant(undefined),
        more: isOdd ? oddHeaders : fc.constant({}),
        raw: schema
          ? oddly<string | undefined>(undefined, fc.constantFrom(...ODD_BODIES))
          : fc.constant(undefined),
      })
      .map(({ isHead, params, query, headers, json, more, raw }) => {
        const body = raw ?? (json === undefined ? undefined : JSON.stringify(json));
        return {
          operationId,
          method: isHead ? "HEAD" : method.toUpperCase(),
          path: withParameters(path, params, query),
          headers: {
            ...(body !== undefined && { "content-type": "application/json" }),
            ...toHeaders({ ...headers, ...more }),
          },
          ...(body !== undefined && { body }),
        };
      });
  };
  return fc.oneof({ weight: 2, arbitrary: requests(false) }, { weight: 1, arbitrary: requests(true) });
}

/** Returns a schema of all parameters in one place. */
function objectOf(parameters: OperationObject["parameters"]): JsonSchema {
  return {
    type: "object",
    properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  } as JsonSchema;
}

function withParameters(
  path: string,
  params: Record<string, unknown>,
  query: Record<string, unknown>,
): string {
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

/** Encodes a text for a URL, unless it is a reference or starts like an encoded text. */
function encode(value: unknown): string {
  const text = String(value);
  if (/^(<[\w ]+>|%.*)$/.test(text)) return text;
  return encodeURIComponent(text.toWellFormed()).slice(0, ENCODED_MAX);
}

const sometimes = (...values: string[]) => seldom(fc.constant(undefined), fc.constantFrom(...values));

const oddHeaders = fc.record({
  Accept: fc.constantFrom("*/*", "*/*", "application/json;q=0", "text/html", "", ";", "ü"),
  Authorization: sometimes("", "Bearer", "Bearer unknown", "Bearer <reader>", "Basic YTpi", "DPoP unknown"),
  "Content-Type": sometimes(
    "",
    "text/plain",
    "application/JSON; charset=utf-8",
    "application/json; charset=utf-16",
    ";",
  ),
  "Content-Encoding": sometimes("gzip", "identity", "x"),
  "Idempotency-Key": sometimes("", " ", "a b", "ü", "x".repeat(256)),
});

const ODD_BODIES: readonly string[] = [
  "",
  "{",
  "null",
  "[]",
  '"x"',
  "[{}]",
  '{"url":"https://example.com/","url":5}',
  '{"url":"https://example.com/","metadata":{"a":1e400}}',
  '{"url":"https://example.com/","title":"\\ud800"}',
  '{"__proto__":{"url":"https://example.com/"}}',
  `{"url":"https://example.com/","metadata":${'{"a":'.repeat(2000)}1${"}".repeat(2000)}}`,
  `{"links":[${'{"url":"https://example.com/"},'.repeat(101)}{}]}`,
  `{"title":"${"x".repeat(70_000)}"}`,
];

const unknownOperations = fc.record({
  operationId: fc.constant("none"),
  method: fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"),
  path: fc
    .array(
      fc.oneof(fc.constantFrom("links", "bulk", "webhooks", "<link 0>"), fc.constantFrom(...ODD_TEXTS)),
      {
        maxLength: 4,
      },
    )
    .map((segments) => `/v1/${segments.map(encode).join("/")}`),
  headers: fc.constant({}),
});
