import fc from "fast-check";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import type { OperationObject } from "../../../resources/openapi/operation-object.ts";
import { toHeaders } from "./headers.ts";
import { namedValues, type Objects } from "./objects.ts";
import { ODD_TEXTS } from "./odd-values.ts";
import { createGenerator, seldom } from "./schema-values.ts";

export type ApiRequest = {
  operationId: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
};

/** Returns the generators of requests for the operations of a document, some of which it forbids. They name existing objects. */
export function apiRequests(document: OpenApiDocument): ((objects: Objects) => fc.Arbitrary<ApiRequest>)[] {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => requestsFor({ path, method, operation, document })),
  );
  return [...operations, unknownOperations];
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
      const none = fc.constant(undefined);
      return fc
        .record({
          params: parametersIn("path"),
          query: parametersIn("query"),
          headers: parametersIn("header"),
          isHead: isOdd ? seldom(fc.constant(false), fc.constant(method === "get")) : fc.constant(false),
          json: schema ? values(schema) : none,
          more: isOdd ? oddHeaders(objects.reader) : fc.constant({}),
          raw: schema && isOdd ? seldom(none, fc.constantFrom(...ODD_BODIES)) : none,
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

const sometimes = (...values: string[]) => seldom(fc.constant(undefined), fc.constantFrom(...values));

const ODD_CREDENTIALS = ["", "Bearer", "Bearer unknown", "Basic YTpi", "DPoP unknown"];

const oddHeaders = (reader: string) =>
  fc.record({
    Accept: fc.constantFrom("*/*", "*/*", "application/json;q=0", "text/html", "", ";", "ü"),
    Authorization: sometimes(...ODD_CREDENTIALS, `Bearer ${reader}`),
    "Content-Type": sometimes("", "text/plain", "application/json; charset=utf-16", ";"),
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

const unknownOperations = ({ existing }: Objects) =>
  fc.record({
    operationId: fc.constant("none"),
    method: fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"),
    path: fc
      .array(fc.constantFrom("links", "bulk", "webhooks", ...existing.link, ...ODD_TEXTS), { maxLength: 4 })
      .map((segments) => `/v1/${segments.map(encode).join("/")}`),
    headers: fc.constant({}),
  });
