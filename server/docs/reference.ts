import type { Tool } from "../../resources/mcp/tool.ts";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { type JsonSchema, toJsonSchema } from "../../resources/openapi/json-schema.ts";
import type { OperationObject, ResponseObject } from "../../resources/openapi/operation-object.ts";
import type { WEBHOOK_EVENT_SCHEMAS } from "../../resources/webhooks/event-schemas.ts";
import { fenced, json, type LocatedOperation, requestExamples } from "./examples.ts";
import {
  exampleOf,
  type Field,
  fieldsOf,
  fieldTable,
  markdownTable,
  referenceOf,
  type Schemas,
} from "./fields.ts";
import type { DocsPage } from "./guides.ts";

const SECTION = "API reference";
/** The address of the reference. */
export const REFERENCE = "/docs/api";

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

/** Returns the address of an operation, such as `/docs/api/create-link`. */
export function operationPath({ operationId }: Pick<OperationObject, "operationId">): string {
  return `${REFERENCE}/${operationId.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Links to an operation's page. */
export function operationLink({ operation }: LocatedOperation): string {
  return `[${operation.summary}](${operationPath(operation)}.md)`;
}

export function codeLink(code: string): string {
  return `[\`${code}\`](/docs/errors/${code}.md)`;
}

/** Returns the codes that an error response can have. */
export function codesOf({ content }: ResponseObject): string[] {
  const { allOf = [] } = (content?.["application/problem+json"]?.schema ?? {}) as JsonSchema;
  return allOf.flatMap(
    (part) => ((part as JsonSchema).properties?.code as JsonSchema | undefined)?.enum ?? [],
  ) as string[];
}

function overview(operations: LocatedOperation[]): DocsPage {
  const byTag = Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? "");
  const lists = [...byTag].map(
    ([tag, located]) => `## ${tag}

${markdownTable(
  ["Operation", "Request"],
  located.map((one) => [operationLink(one), `\`${one.method.toUpperCase()} ${one.path}\``]),
)}`,
  );
  return {
    path: REFERENCE,
    title: "API reference",
    description: "every operation of the REST API, webhook event and MCP tool",
    section: SECTION,
    markdown: `# API reference

Each operation has a page with its parameters, response, errors and examples. The same is available as [OpenAPI 3.1](/v1/openapi.json), for generating clients. Events that webhooks receive are under [Webhook events](${REFERENCE}/events.md), and what agents can do under [MCP tools](${REFERENCE}/mcp-tools.md).

Requests and responses are UTF-8 JSON with \`snake_case\` names, RFC 3339 timestamps in UTC, and IDs with a prefix, such as \`lnk_\`.

${lists.join("\n\n")}
`,
  };
}

function operationPage(located: LocatedOperation, schemas: Schemas): DocsPage {
  const { method, path, operation } = located;
  const { summary, description, parameters, requestBody, security, responses } = operation;
  const sent = find(schemas, requestBody?.content["application/json"]?.schema);
  const scopes = security.flatMap(({ oauth2 }) => oauth2);
  const needs =
    security.length === 0
      ? "No token is needed."
      : scopes.length === 0
        ? "Any token is accepted."
        : `Requires the scope ${scopes.map((scope) => `\`${scope}\``).join(" and ")}.`;
  const parametersIn = (place: keyof typeof PLACES) => {
    const fields = parameters
      .filter((parameter) => parameter.in === place)
      .map(({ description: meaning, ...rest }): Field => ({ ...rest, meaning }));
    return fields.length > 0 && `## ${PLACES[place]}\n\n${fieldTable(fields)}`;
  };
  const parts = [
    `# ${summary}`,
    `\`${method.toUpperCase()} ${path}\``,
    description,
    needs,
    parametersIn("path"),
    parametersIn("query"),
    sent && `## Body\n\n${fieldTable(fieldsOf(sent, schemas))}`,
    parametersIn("header"),
    ...Object.entries(responses)
      .filter(([status]) => !isError(status))
      .map(([status, response]) => successOf(status, response, schemas)),
    `## Errors\n\n${errorsOf(operation)}`,
  ];
  const [status, response] =
    Object.entries(responses).find(([, { content }]) => content?.["application/json"]) ?? [];
  const example = exampleOf(find(schemas, response?.content?.["application/json"]?.schema));
  return {
    path: operationPath(operation),
    title: summary,
    description: `\`${method.toUpperCase()} ${path}\``,
    section: SECTION,
    group: operation.tags[0] ?? "",
    method,
    markdown: `${parts.filter(Boolean).join("\n\n")}\n`,
    examples: `## Example request

${requestExamples(located, sent && exampleOf(sent))}
${example === undefined ? "" : `\n## Example response ${status}\n\n${fenced("json", json(example))}\n`}`,
  };
}

const PLACES = { path: "Path parameters", query: "Query parameters", header: "Headers" };

function isError(status: string): boolean {
  return Number(status) >= 400;
}

function find(schemas: Schemas, reference: object | undefined): JsonSchema | undefined {
  const name = reference && referenceOf(reference as JsonSchema);
  return name === undefined ? undefined : schemas[name];
}

// Every response has these; the guide on requests explains them.
const COMMON_HEADERS = new Set(["RateLimit", "RateLimit-Policy", "X-Request-Id"]);

function successOf(status: string, response: ResponseObject, schemas: Schemas): string {
  const headers = Object.keys(response.headers)
    .filter((header) => !COMMON_HEADERS.has(header))
    .map((header) => `\`${header}\``);
  const schema = find(schemas, response.content?.["application/json"]?.schema);
  const fields = schema ? fieldsOf(schema, schemas) : [];
  return [
    `## Response ${status}`,
    `${response.description}${headers.length > 0 ? ` With the header${headers.length > 1 ? "s" : ""} ${headers.join(", ")}.` : ""}`,
    fields.length > 0 && fieldTable(fields, { isResponse: true }),
  ]
    .filter(Boolean)
    .join("\n\n");
}

function errorsOf({ responses }: OperationObject): string {
  return markdownTable(
    ["Status", "Code"],
    Object.entries(responses)
      .filter(([status]) => isError(status))
      .map(([status, response]) => [status, codesOf(response).map(codeLink).join(", ")]),
  );
}

function eventsPage(events: ReferenceContent["events"], schemas: Schemas): DocsPage {
  const parts = events.map(({ event, meaning, body }) => {
    const schema = schemas[body.meta()?.title ?? ""] ?? {};
    return `## ${event}

${meaning}

${fieldTable(fieldsOf(schema, schemas), { isResponse: true })}

${fenced("json", json(exampleOf(schema)), "Body")}`;
  });
  return {
    path: `${REFERENCE}/events`,
    title: "Webhook events",
    description: "the body of each event that webhooks receive",
    section: SECTION,
    markdown: `# Webhook events

A webhook receives the events that it subscribed to. Each body has \`type\`, \`timestamp\` and \`data\`.

${parts.join("\n\n")}
`,
  };
}

function toolsPage(tools: readonly Tool[]): DocsPage {
  const parts = tools.map((tool) => {
    const fields = fieldsOf(toJsonSchema(tool.input, "input"));
    const { readOnlyHint, destructiveHint } = tool.annotations;
    const scopes = tool.scopes.map((scope) => `\`${scope}\``).join(" and ");
    return [
      `## ${tool.name}`,
      `**${tool.title}.** ${tool.description}`,
      `${scopes ? `Requires the scope ${scopes}.` : "Any token is accepted."}${readOnlyHint ? " Read-only." : ""}${destructiveHint ? " Destructive." : ""}`,
      fields.length > 0 ? fieldTable(fields) : "No parameters.",
    ].join("\n\n");
  });
  return {
    path: `${REFERENCE}/mcp-tools`,
    title: "MCP tools",
    description: "what agents can do through MCP, with the parameters of each tool",
    section: SECTION,
    markdown: `# MCP tools

Agents can use everything the REST API offers through MCP, with the same rules and limits. A client lists only the tools that its token allows. Calling another one returns 403 with the scope to request.

A tool that fails returns \`isError\` and an error as JSON; \`next\` says what to do:

${fenced(
  "json",
  json({
    status: 409,
    code: "slug_taken",
    detail: "slug: This slug is taken.",
    next: "Choose another slug, or omit it for a random one.",
    request_id: "0b9d6a3c-7f0e-4f0e-9a55-3c9d1f6a2b10",
  }),
)}

${parts.join("\n\n")}
`,
  };
}
