import type { z } from "zod";
import type { Addresses } from "../metadata.ts";
import { problemSchema } from "../problem.ts";
import { API_SCOPES, SCOPE_MEANINGS } from "../scopes.ts";
import { type Schemas, schemasOf } from "./components.ts";
import { ANSWER_HEADERS } from "./headers.ts";
import type { Operation } from "./operation.ts";
import { headersOf, type Parameter, parametersOf } from "./parameters.ts";
import { refusalsOf } from "./refusals.ts";

/** The OpenAPI 3.1 document, as far as we use the format. */
export type OpenApiDocument = {
  openapi: string;
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, OperationObject>>;
  /** What is sent to receivers, by the name of the event. */
  webhooks: Record<string, { post: object }>;
  components: { schemas: Schemas; headers: object; securitySchemes: object };
  [more: string]: unknown;
};

/** One operation in the document. */
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

export type ResponseObject = { description: string; headers: object; content?: Content };
type Content = Record<string, { schema: object }>;

/** Something that receivers are told of, with the body that they are sent. */
export type Told = { event: string; meaning: string; body: z.ZodType };

type DocumentOptions = { addresses: Addresses; version: string; told: readonly Told[] };

/** Describes operations by the very schemas that validate. @throws TypeError for a body without a title */
export function documentOf(operations: readonly Operation[], options: DocumentOptions): OpenApiDocument {
  const { addresses, version, told } = options;
  const docs = `${addresses.base}/docs`;
  const { components, refTo } = schemasOf(operations, [problemSchema, ...told.map(({ body }) => body)]);

  function describe(operation: Operation): OperationObject {
    const { id, tag, summary, description, scopes, body, answers } = operation;
    const successes = Object.entries(answers).map(([status, answer]): [string, ResponseObject] => [
      status,
      {
        description: answer.description,
        headers: headersOf(operation, answer),
        ...(answer.body && { content: { "application/json": { schema: refTo(answer.body) } } }),
      },
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
      responses: { ...Object.fromEntries(successes), ...refusalsOf(operation) },
    };
  }

  const paths: OpenApiDocument["paths"] = {};
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: describe(operation) };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "linkgate",
      version,
      description: `Short links and webhooks of an organization. How to get a token, limits, examples and every code of a problem: ${docs}`,
    },
    servers: [{ url: addresses.base }],
    externalDocs: { url: docs },
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    webhooks: Object.fromEntries(
      told.map(({ event, meaning, body }) => [event, { post: deliveryOf(meaning, refTo(body)) }]),
    ),
    components: {
      schemas: components,
      headers: Object.fromEntries(
        Object.entries(ANSWER_HEADERS).map(([name, description]) => [
          name,
          { description, schema: { type: "string" } },
        ]),
      ),
      securitySchemes: { oauth2: securityScheme(addresses) },
    },
  };
}

/** The request that a receiver gets (Standard Webhooks 1.0.0, "Webhook headers"). */
function deliveryOf(meaning: string, schema: object) {
  const headers = {
    "webhook-id": "The id of the event: the same in every attempt.",
    "webhook-timestamp": "When this attempt is made, in seconds since 1970.",
    "webhook-signature": "One signature or two, `v1,` and base64, with a space between them.",
  };
  return {
    tags: ["Webhooks"],
    summary: meaning,
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
      "2XX": { description: "It has arrived." },
      410: { description: "Nothing more is to be sent: the webhook is disabled." },
      default: { description: "It is sent again later." },
    },
  };
}

function securityScheme({ base }: Addresses) {
  const scopes = Object.fromEntries(API_SCOPES.map((scope) => [scope, SCOPE_MEANINGS[scope]]));
  const urls = { tokenUrl: `${base}/oauth/token`, refreshUrl: `${base}/oauth/token` };
  return {
    type: "oauth2",
    description: "A write scope includes its read scope.",
    flows: {
      clientCredentials: { tokenUrl: urls.tokenUrl, scopes },
      authorizationCode: { authorizationUrl: `${base}/oauth/authorize`, ...urls, scopes },
    },
  };
}
