import type { z } from "zod";
import type { PublicUrls } from "../access/resource-metadata.ts";
import { API_SCOPES, SCOPE_DESCRIPTIONS } from "../access/scopes.ts";
import { problemSchema } from "../http/problem.ts";
import { type Content, errorResponsesOf, type ResponseObject } from "./error-responses.ts";
import { RESPONSE_HEADERS } from "./headers.ts";
import { type JsonSchema, toJsonSchemas } from "./json-schema.ts";
import type { Operation, SuccessResponse } from "./operation.ts";
import { headersOf, type Parameter, parametersOf } from "./parameters.ts";

/** JSON Schemas by name. */
type Schemas = Record<string, JsonSchema>;

const SCHEMAS = "#/components/schemas/";

/** The parts of an OpenAPI 3.1 document that this one uses. */
export type OpenApiDocument = {
  openapi: string;
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, OperationObject>>;
  /** Webhook requests by event type. */
  webhooks: Record<string, { post: object }>;
  components: { schemas: Schemas; headers: object; securitySchemes: object };
  [more: string]: unknown;
};

/** An operation in the document. */
export type OperationObject = {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: { oauth2: string[] }[];
  parameters: Parameter[];
  requestBody?: { required: true; content: Content };
  responses: Record<string, ResponseObject>;
};

/** A webhook event and the schema of its payload. */
export type WebhookEventDescription = { event: string; meaning: string; body: z.ZodType };

type DocumentOptions = { urls: PublicUrls; version: string; events: readonly WebhookEventDescription[] };
type RefTo = (schema: z.ZodType) => { $ref: string };

/** Builds the document from the same schemas that validate requests. @throws TypeError for a body without a title */
export function buildDocument(operations: readonly Operation[], options: DocumentOptions): OpenApiDocument {
  const { urls, version, events } = options;
  const docs = `${urls.base}/docs`;
  const { components, refTo } = schemasOf(operations, [problemSchema, ...events.map(({ body }) => body)]);
  return {
    openapi: "3.1.1",
    info: {
      title: "linkgate",
      version,
      description: `Short links and webhooks for organizations. Authentication, rate limits, examples and all error codes: ${docs}`,
    },
    servers: [{ url: urls.base }],
    externalDocs: { url: docs },
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths: pathsOf(operations, refTo),
    webhooks: Object.fromEntries(
      events.map(({ event, meaning, body }) => [event, { post: deliveryOf(meaning, refTo(body)) }]),
    ),
    components: {
      schemas: components,
      headers: describeHeaders(),
      securitySchemes: { oauth2: securityScheme(urls) },
    },
  };
}

function pathsOf(operations: readonly Operation[], refTo: RefTo): OpenApiDocument["paths"] {
  const paths: OpenApiDocument["paths"] = {};
  for (const operation of operations) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method]: toOperationObject(operation, refTo),
    };
  }
  return paths;
}

function toOperationObject(operation: Operation, refTo: RefTo): OperationObject {
  const { id, tag, summary, description, scopes, body, responses } = operation;
  const successes = Object.entries(responses).map(([status, response]): [string, ResponseObject] => [
    status,
    toResponseObject(operation, response, refTo),
  ]);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description && { description }),
    security: scopes === "open" ? [] : [{ oauth2: [...scopes] }],
    parameters: parametersOf(operation),
    ...(body && {
      requestBody: { required: true, content: { "application/json": { schema: refTo(body) } } },
    }),
    responses: { ...Object.fromEntries(successes), ...errorResponsesOf(operation) },
  };
}

function toResponseObject(operation: Operation, response: SuccessResponse, refTo: RefTo): ResponseObject {
  return {
    description: response.description,
    headers: headersOf(operation, response),
    ...(response.body && { content: { "application/json": { schema: refTo(response.body) } } }),
  };
}

/** Describes the request sent to a webhook (Standard Webhooks 1.0.0, "Webhook headers"). */
function deliveryOf(summary: string, schema: object) {
  const headers = {
    "webhook-id": "The ID of the event. The same in every attempt.",
    "webhook-timestamp": "When this attempt was made, in seconds since the Unix epoch.",
    "webhook-signature": "One or two space-separated signatures, each `v1,` followed by base64.",
  };
  return {
    tags: ["Webhooks"],
    summary,
    security: [],
    parameters: Object.entries(headers).map(([name, description]) => ({
      name,
      in: "header",
      required: true,
      description,
      schema: { type: "string" },
    })),
    requestBody: { required: true, content: { "application/json": { schema } } },
    responses: {
      "2XX": { description: "Received." },
      410: { description: "The webhook is disabled. No more events are sent." },
      default: { description: "The delivery is retried later." },
    },
  };
}

function describeHeaders(): object {
  return Object.fromEntries(
    Object.entries(RESPONSE_HEADERS).map(([name, description]) => [
      name,
      { description, schema: { type: "string" } },
    ]),
  );
}

function securityScheme({ base }: PublicUrls) {
  const scopes = Object.fromEntries(API_SCOPES.map((scope) => [scope, SCOPE_DESCRIPTIONS[scope]]));
  const urls = { tokenUrl: `${base}/oauth/token`, refreshUrl: `${base}/oauth/token` };
  return {
    type: "oauth2",
    description:
      "A write scope includes its read scope. Send the token as `Authorization: Bearer`, or, if it was issued with a DPoP proof (RFC 9449), as `Authorization: DPoP` with a new proof in the `DPoP` header.",
    flows: {
      clientCredentials: { tokenUrl: urls.tokenUrl, scopes },
      authorizationCode: { authorizationUrl: `${base}/oauth/authorize`, ...urls, scopes },
    },
  };
}

/**
 * Collects the schemas of the document: request bodies as input, and response bodies and webhook payloads as output. Each
 * is named by its title, and other schemas that contain it refer to it by that name.
 * @throws TypeError for a body without a title
 */
function schemasOf(operations: readonly Operation[], others: readonly z.ZodType[]) {
  const requests = new Set(operations.flatMap(({ body }) => body ?? []));
  const responses = new Set([
    ...operations.flatMap((operation) =>
      Object.values(operation.responses).flatMap(({ body }) => body ?? []),
    ),
    ...others,
  ]);
  const components: Schemas = { ...convert(responses, "output"), ...convert(requests, "input") };
  return { components, refTo: (schema: z.ZodType) => ({ $ref: SCHEMAS + titleOf(schema) }) };
}

function convert(schemas: Iterable<z.ZodType>, io: "input" | "output"): Schemas {
  const named = [...schemas].map((schema): [string, z.ZodType] => [titleOf(schema), schema]);
  return toJsonSchemas(named, io, (name) => SCHEMAS + name);
}

function titleOf(schema: z.ZodType): string {
  const { title } = schema.meta() ?? {};
  if (!title) throw new TypeError("a request or response body requires a title: .meta({ title })");
  return title;
}
