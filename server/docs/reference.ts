import type { WEBHOOK_EVENT_SCHEMAS } from "../../resources/events/delivered-events.ts";
import type { Tool } from "../../resources/mcp/tool.ts";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { type JsonSchema, toJsonSchema } from "../../resources/openapi/json-schema.ts";
import type { OperationObject, ResponseObject } from "../../resources/openapi/operation-object.ts";
import { type LocatedOperation, requestExamples } from "./examples.ts";
import { exampleOf, type Field, fieldsOf, fieldTable, type Schemas, schemaOf } from "./fields.ts";
import type { DocsPage } from "./guides.ts";
import { jsonBlock, paragraphs, tableOf, writePage } from "./markdown-writer.ts";

export const SECTION = "API reference";
export const REFERENCE = "/docs/api";
export const EXAMPLE_REQUEST_ID = "0b9d6a3c-7f0e-4f0e-9a55-3c9d1f6a2b10";

export type ReferenceContent = {
  base: string;
  document: OpenApiDocument;
  tools: readonly Tool[];
  events: typeof WEBHOOK_EVENT_SCHEMAS;
};

/** Describes each operation, event and tool by the schemas that validate and serve requests. */
export function referencePages({ base, document, tools, events }: ReferenceContent): DocsPage[] {
  const { schemas } = document.components;
  const operations = operationsOf(document, base);
  return [
    overview(operations),
    ...operations.map((located) => operationPage(located, schemas)),
    eventsPage(events, schemas),
    toolsPage(tools),
  ];
}

export function operationsOf({ paths }: OpenApiDocument, base: string): LocatedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ base, method, path, operation })),
  );
}

function operationPath({ operationId }: OperationObject): string {
  return `${REFERENCE}/${operationId.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

export function operationLink({ operation }: LocatedOperation): string {
  return `[${operation.summary}](${operationPath(operation)}.md)`;
}

/** Returns the method and path of an operation as code. */
export function requestOf({ method, path }: LocatedOperation): string {
  return `\`${method.toUpperCase()} ${path}\``;
}

export function codeLink(code: string): string {
  return `[\`${code}\`](/docs/errors/${code}.md)`;
}

/** Returns the codes that an error response can have. */
export function codesOf({ content }: ResponseObject): string[] {
  const { allOf = [] } = (content?.["application/problem+json"]?.schema ?? {}) as { allOf?: JsonSchema[] };
  return allOf.flatMap(
    ({ properties }) => ((properties?.code as JsonSchema | undefined)?.enum ?? []) as string[],
  );
}

function overview(operations: LocatedOperation[]): DocsPage {
  const byTag = Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? "");
  const page = {
    path: REFERENCE,
    title: "API reference",
    description: "every operation of the REST API, webhook event and MCP tool",
    section: SECTION,
  };
  return writePage(page, [
    `Each operation has a page with its parameters, response, errors and examples. The same is available as [OpenAPI 3.1](/v1/openapi.json), for generating clients. Events that webhooks receive are under [Webhook events](${REFERENCE}/events.md), and what agents can do under [MCP tools](${REFERENCE}/mcp-tools.md).`,
    "Requests and responses are UTF-8 JSON with `snake_case` names, RFC 3339 timestamps in UTC, and IDs with a prefix, such as `lnk_`.",
    ...[...byTag].flatMap(([tag, located]) => [
      `## ${tag}`,
      tableOf(
        ["Operation", "Request"],
        located.map((one) => [operationLink(one), requestOf(one)]),
      ),
    ]),
  ]);
}

const PLACES = { path: "Path parameters", query: "Query parameters", header: "Headers" };

/** Returns nothing if there are none. */
export function parameterTable(
  { parameters }: OperationObject,
  place: keyof typeof PLACES,
): string | undefined {
  const fields = parameters
    .filter((parameter) => parameter.in === place)
    .map(({ description: meaning, ...rest }): Field => ({ ...rest, meaning }));
  return fields.length > 0 ? fieldTable(fields) : undefined;
}

function operationPage(located: LocatedOperation, schemas: Schemas): DocsPage {
  const { method, operation } = located;
  const { summary, description, requestBody, responses } = operation;
  const sent = schemaOf(requestBody?.content, schemas);
  const parametersIn = (place: keyof typeof PLACES) => {
    const table = parameterTable(operation, place);
    return table && `## ${PLACES[place]}\n\n${table}`;
  };
  const [successes, errors] = [false, true].map((isError) =>
    Object.entries(responses).filter(([status]) => Number(status) >= 400 === isError),
  ) as [[string, ResponseObject][], [string, ResponseObject][]];
  const [status, response] = successes.find(([, { content }]) => schemaOf(content, schemas)) ?? [];
  const example = exampleOf(schemaOf(response?.content, schemas));
  const page = {
    path: operationPath(operation),
    title: summary,
    description: requestOf(located),
    section: SECTION,
    group: operation.tags[0] ?? "",
    method,
    examples: paragraphs([
      "## Example request",
      requestExamples(located, exampleOf(sent)),
      example !== undefined && `## Example response ${status}`,
      example !== undefined && jsonBlock(example),
    ]),
  };
  return writePage(page, [
    requestOf(located),
    description,
    requirementOf(operation),
    parametersIn("path"),
    parametersIn("query"),
    sent && `## Body\n\n${fieldTable(fieldsOf(sent, schemas))}`,
    parametersIn("header"),
    ...successes.flatMap(([status, response]) => {
      const fields = fieldsOf(schemaOf(response.content, schemas) ?? {}, schemas);
      return [
        `## Response ${status}`,
        `${response.description}${headersOf(response)}`,
        fields.length > 0 && fieldTable(fields, { isResponse: true }),
      ];
    }),
    "## Errors",
    tableOf(
      ["Status", "Code"],
      errors.map(([status, response]) => [status, codesOf(response).map(codeLink).join(", ")]),
    ),
  ]);
}

function requirementOf({ security }: OperationObject): string {
  if (security.length === 0) return "No token is needed.";
  return requiredScopes(security.flatMap(({ oauth2 = [] }) => oauth2));
}

function requiredScopes(scopes: readonly string[]): string {
  if (scopes.length === 0) return "Any token is accepted.";
  return `Requires the scope ${scopes.map((scope) => `\`${scope}\``).join(" and ")}.`;
}

// Every response has these; the guide on requests explains them.
const COMMON_HEADERS = new Set(["RateLimit", "RateLimit-Policy", "X-Request-Id"]);

function headersOf({ headers }: ResponseObject): string {
  const names = Object.keys(headers).filter((header) => !COMMON_HEADERS.has(header));
  if (names.length === 0) return "";
  return ` With the header${names.length > 1 ? "s" : ""} ${names.map((name) => `\`${name}\``).join(", ")}.`;
}

function eventsPage(events: ReferenceContent["events"], schemas: Schemas): DocsPage {
  const page = {
    path: `${REFERENCE}/events`,
    title: "Webhook events",
    description: "the body of each event that webhooks receive",
    section: SECTION,
  };
  return writePage(page, [
    "A webhook receives the events that it subscribed to. Each body has `type`, `timestamp` and `data`.",
    ...events.flatMap(({ event, meaning, body }) => {
      const schema = schemas[body.meta()?.title ?? ""] ?? {};
      const fields = fieldTable(fieldsOf(schema, schemas), { isResponse: true });
      return [`## ${event}`, meaning, fields, jsonBlock(exampleOf(schema))];
    }),
  ]);
}

const TOOL_ERROR = {
  status: 409,
  code: "slug_taken",
  detail: "slug: This slug is taken.",
  next: "Choose another slug, or omit it for a random one.",
  request_id: EXAMPLE_REQUEST_ID,
};

function toolsPage(tools: readonly Tool[]): DocsPage {
  const page = {
    path: `${REFERENCE}/mcp-tools`,
    title: "MCP tools",
    description: "what agents can do through MCP, with the parameters of each tool",
    section: SECTION,
  };
  return writePage(page, [
    "Agents can use everything the REST API offers through MCP, with the same rules and limits. A client lists only the tools that its token allows. Calling another one returns 403 with the scope to request.",
    "A tool that fails returns `isError` and an error as JSON; `next` says what to do:",
    jsonBlock(TOOL_ERROR),
    ...tools.flatMap((tool) => {
      const fields = fieldsOf(toJsonSchema(tool.input, "input"));
      const { readOnlyHint, destructiveHint } = tool.annotations;
      return [
        `## ${tool.name}`,
        `**${tool.title}.** ${tool.description}`,
        `${requiredScopes(tool.scopes)}${readOnlyHint ? " Read-only." : ""}${destructiveHint ? " Destructive." : ""}`,
        fields.length > 0 ? fieldTable(fields) : "No parameters.",
      ];
    }),
  ]);
}
