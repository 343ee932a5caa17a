import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import type { JsonSchema } from "../../resources/openapi/json-schema.ts";
import type { OperationObject, ResponseObject } from "../../resources/openapi/operation-object.ts";
import { badge } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { curlOf, exampleOf } from "./examples.ts";
import { codeLink, listing, pretty, prose } from "./prose.ts";
import { type Field, fieldsOf, fieldTable, referenceOf, schemaLink } from "./schema.ts";

/** An operation with its method and path. */
export type LocatedOperation = { base: string; method: string; path: string; operation: OperationObject };

/** Renders an operation: description, parameters and responses, next to an example request. */
export function operationView({ components: { schemas } }: OpenApiDocument, located: LocatedOperation): Html {
  const { method, path, operation } = located;
  const { operationId, summary, description, parameters, requestBody, security } = operation;
  const sent = find(schemas, requestBody?.content["application/json"]?.schema as JsonSchema | undefined);
  const parameterFields: Field[] = [
    ...parameters.map(({ in: place, description: meaning, ...rest }) => ({ ...rest, meaning, place })),
    ...(sent ? fieldsOf(sent.schema) : []),
  ];
  const scopes = security.flatMap(({ oauth2 }) => oauth2);
  return html`<section class="operation" id="${operationId}">
<div class="what">
<h3>${summary}</h3>
<p class="call"><span class="method ${method}">${method.toUpperCase()}</span> <code>${path}</code></p>
${description && html`<p>${prose(description)}</p>`}
<p>${
    scopes.length > 0
      ? html`Requires ${scopes.map((scope) => badge(scope))}`
      : html`Requires ${badge("no token")}`
  }</p>
${parameterFields.length > 0 && fieldTable(`Parameters of ${summary}`, parameterFields)}
${responsesOf(operation)}
</div>
<div class="how">
${listing(`Example: ${summary}`, curlOf(located, operation, sent && exampleOf(sent.schema)))}
${exampleResponse(schemas, operation)}
</div>
</section>
`;
}

type Schemas = OpenApiDocument["components"]["schemas"];

function find(schemas: Schemas, reference: JsonSchema | undefined) {
  const name = reference && referenceOf(reference);
  const schema = name === undefined ? undefined : schemas[name];
  return name !== undefined && schema ? { name, schema } : undefined;
}

function schemaOf({ content }: ResponseObject): JsonSchema | undefined {
  return content?.["application/json"]?.schema as JsonSchema | undefined;
}

/** Renders successful responses with body and headers, then errors by code. */
function responsesOf({ responses }: OperationObject): Html {
  const all = Object.entries(responses);
  const isError = ([status]: [string, ResponseObject]) => Number(status) >= 400;
  return html`<h4>Responses</h4>
<dl class="responses">
${all.filter((entry) => !isError(entry)).map(([status, response]) => success(status, response))}
${all.filter(isError).map(
  ([status, response]) =>
    html`<dt>${status}</dt><dd>${codesOf(response).map((code, index) => html`${index ? ", " : ""}${codeLink(code)}`)}</dd>
`,
)}
</dl>`;
}

// Every response has these; the guide explains them.
const COMMON_HEADERS = new Set(["RateLimit", "RateLimit-Policy", "X-Request-Id"]);

function success(status: string, response: ResponseObject): Html {
  const name = referenceOf(schemaOf(response) ?? {});
  const headers = Object.keys(response.headers).filter((header) => !COMMON_HEADERS.has(header));
  return html`<dt>${status}</dt><dd>${response.description}${name && html` ${schemaLink(name)}`}${
    headers.length > 0
      ? html` <small>with ${headers.map((header, index) => html`${index ? ", " : ""}<code>${header}</code>`)}</small>`
      : html``
  }</dd>
`;
}

/** Returns the codes that an error response can have. */
export function codesOf({ content }: ResponseObject): string[] {
  const { allOf = [] } = (content?.["application/problem+json"]?.schema ?? {}) as JsonSchema;
  return allOf.flatMap(
    (part) => ((part as JsonSchema).properties?.code as JsonSchema | undefined)?.enum ?? [],
  ) as string[];
}

function exampleResponse(schemas: Schemas, { summary, responses }: OperationObject): Html {
  const [status, response] = Object.entries(responses).find(([, one]) => schemaOf(one)) ?? [];
  const example = exampleOf(find(schemas, response && schemaOf(response))?.schema);
  if (example === undefined) return html``;
  return html`<details><summary>Example response (${status})</summary>${listing(`Example response: ${summary}`, pretty(example))}</details>`;
}
