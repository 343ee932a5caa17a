import { z } from "zod";
import type { PublicUrls } from "../access/resource-metadata.ts";
import { API_SCOPES, SCOPE_DESCRIPTIONS } from "../access/scopes.ts";
import { respondWithTagged, tagged } from "../http/etag.ts";
import { RESPONSE_HEADERS } from "../http/headers.ts";
import { problemSchema } from "../http/problem.ts";
import { lazy } from "../lazy.ts";
import { type JsonSchema, toJsonSchemas } from "./json-schema.ts";
import type { Declare, Operation } from "./operation.ts";
import { describeOperation, type OperationObject, toOperationObject } from "./operation-object.ts";

type Schemas = Record<string, JsonSchema>;

const SCHEMAS = "#/components/schemas/";

const TAGS: Record<Operation["tag"], string> = {
  Links: "Short links, and the URLs that they redirect to.",
  Domains: "The hosts of an organization’s short links.",
  Analytics: "Clicks of links by day and origin.",
  Webhooks: "Events, and the endpoints that receive them.",
  Organization: "The organization that a token acts for.",
  Documentation: "The description of the API.",
};

/** The parts of an OpenAPI 3.1 document that this one uses. */
export type OpenApiDocument = {
  openapi: string;
  info: { title: string; version: string; description: string; license: object };
  paths: Record<string, Record<string, OperationObject>>;
  webhooks: Record<string, { post: object }>;
  components: { schemas: Schemas; headers: object; securitySchemes: object };
  [more: string]: unknown;
};

export type WebhookEventDescription = { event: string; meaning: string; body: z.ZodType };

type DocumentOptions = { urls: PublicUrls; version: string; events: readonly WebhookEventDescription[] };

/** Builds the document from the same schemas that validate requests. @throws TypeError for a body without a title */
export function buildDocument(operations: readonly Operation[], options: DocumentOptions): OpenApiDocument {
  const { urls, version, events } = options;
  const docs = `${urls.base}/docs`;
  const bodies = operations.flatMap((operation) => Object.values(operation.responses));
  const { components, refTo } = describeSchemas(
    operations.flatMap(({ body }) => body ?? []),
    [...bodies.flatMap(({ body }) => body ?? []), problemSchema, ...events.map(({ body }) => body)],
  );
  return {
    ...documentOf(
      operations.map((each) => ({ ...each, object: toOperationObject(describeOperation(each), refTo) })),
      {
        title: "linkgate",
        description: `Short links and webhooks for organizations. Authentication, rate limits, examples and all error codes: ${docs}`,
        version,
        base: urls.base,
        tags: TAGS,
        schemas: components,
        securitySchemes: { oauth2: securityScheme(urls) },
      },
    ),
    webhooks: Object.fromEntries(
      events.map(({ event, meaning, body }) => [event, { post: deliveryOf(event, meaning, refTo(body)) }]),
    ),
  };
}

type Located = { path: string; method: string; object: OperationObject };
type Parts = {
  title: string;
  description: string;
  version: string;
  base: string;
  /** What the tags of operations mean. */
  tags: Record<string, string>;
  schemas: Schemas;
  securitySchemes: object;
};

/** Builds a document of operations that are described already. */
export function documentOf(operations: readonly Located[], parts: Parts): OpenApiDocument {
  const { title, description, version, base, tags, schemas, securitySchemes } = parts;
  const used = new Set(operations.flatMap(({ object }) => object.tags));
  return {
    openapi: "3.1.1",
    info: { title, version, license: { name: "MIT License", identifier: "MIT" }, description },
    servers: [{ url: base }],
    externalDocs: { url: `${base}/docs` },
    tags: [...used].map((name) => ({ name, description: tags[name] })),
    paths: Object.fromEntries(
      Object.entries(Object.groupBy(operations, ({ path }) => path)).map(([path, methods = []]) => [
        path,
        Object.fromEntries(methods.map(({ method, object }) => [method, object])),
      ]),
    ),
    webhooks: {},
    components: { schemas, headers: describeHeaders(), securitySchemes },
  };
}

/** Describes the request sent to a webhook (Standard Webhooks 1.0.0, "Webhook headers"). */
function deliveryOf(event: string, summary: string, schema: object) {
  const headers = {
    "webhook-id": "The ID of the event. The same in every attempt.",
    "webhook-timestamp": "When this attempt was made, in seconds since the Unix epoch.",
    "webhook-signature": "One or two space-separated signatures, each `v1,` followed by base64.",
  };
  return {
    operationId: `receive.${event}`.replace(/[._](\w)/g, (_, initial: string) => initial.toUpperCase()),
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

/** Names each schema by its title, and lets others refer to it. @throws TypeError without a title */
export function describeSchemas(requests: readonly z.ZodType[], responses: readonly z.ZodType[]) {
  const components: Schemas = {
    ...convert(new Set(responses), "output"),
    ...convert(new Set(requests), "input"),
  };
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

/** Builds the document on the first request, because it describes every operation. */
export function serveDocument(declare: Declare, document: () => OpenApiDocument): void {
  const serialized = lazy(() => tagged(JSON.stringify(document())));
  declare({
    id: "getDocument",
    at: "GET /v1/openapi.json",
    tag: "Documentation",
    summary: "Retrieve the OpenAPI document",
    description: "Describes every operation of the API as OpenAPI 3.1. Requires no token.",
    scopes: "open",
    headers: ["If-None-Match"],
    responses: {
      200: {
        description: "The OpenAPI document.",
        body: z
          .looseObject({ openapi: z.string() })
          .meta({ title: "OpenApiDocument", examples: [{ openapi: "3.1.1" }] }),
        headers: ["ETag"],
      },
    },
    handler(ctx) {
      ctx.set("Access-Control-Allow-Origin", "*");
      respondWithTagged(ctx, serialized(), "json");
    },
  });
}
