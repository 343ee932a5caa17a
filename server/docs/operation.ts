import type {
  OpenApiDocument,
  OperationObject,
  ResponseObject,
} from "../../../resources/openapi/document.ts";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import { badge } from "../dashboard/controls.ts";
import { type Html, html } from "../html.ts";
import { curlOf, exampleOf } from "./example.ts";
import { codeLink, listing, pretty, prose } from "./prose.ts";
import { type Field, fieldsOf, fieldTable, referenceOf, schemaLink } from "./schema.ts";

/** An operation with where it is. */
export type Placed = { base: string; method: string; path: string; operation: OperationObject };

/** What an operation does, takes and answers, beside a call to paste. */
export function operationView({ components: { schemas } }: OpenApiDocument, placed: Placed): Html {
  const { method, path, operation } = placed;
  const { operationId, summary, description, parameters, requestBody, security } = operation;
  const sent = find(schemas, requestBody?.content["application/json"]?.schema as JsonSchema | undefined);
  const taken: Field[] = [
    ...parameters.map(({ in: place, description: meaning, ...rest }) => ({ ...rest, meaning, place })),
    ...(sent ? fieldsOf(sent.schema) : []),
  ];
  const scopes = security.flatMap(({ oauth2 }) => oauth2);
  return html`<section class="operation" id="${operationId}">
<div class="what">
<h3>${summary}</h3>
<p class="call"><span class="method ${method}">${method.toUpperCase()}</span> <code>${path}</code></p>
${description ? html`<p>${prose(description)}</p>` : html``}
<p>${
    scopes.length > 0 ? html`Needs ${scopes.map((scope) => badge(scope))}` : html`Needs ${badge("no token")}`
  }</p>
${taken.length > 0 ? fieldTable(`What ${summary} takes`, taken) : html``}
${answersOf(operation)}
</div>
<div class="how">
${listing(`Example: ${summary}`, curlOf(placed, operation, sent && exampleOf(sent.schema)))}
${exampleAnswer(schemas, operation)}
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

/** Successes with their body and headers, then every refusal by its code. */
function answersOf({ responses }: OperationObject): Html {
  const all = Object.entries(responses);
  const isRefusal = ([status]: [string, ResponseObject]) => Number(status) >= 400;
  return html`<h4>Answers</h4>
<dl class="answers">
${all.filter((answer) => !isRefusal(answer)).map(([status, answer]) => success(status, answer))}
${all.filter(isRefusal).map(
  ([status, answer]) =>
    html`<dt>${status}</dt><dd>${codesOf(answer).map((code, index) => html`${index ? ", " : ""}${codeLink(code)}`)}</dd>
`,
)}
</dl>`;
}

// Every answer has these; they are explained once.
const USUAL = new Set(["RateLimit", "RateLimit-Policy", "X-Request-Id"]);

function success(status: string, answer: ResponseObject): Html {
  const name = referenceOf(schemaOf(answer) ?? {});
  const headers = Object.keys(answer.headers).filter((header) => !USUAL.has(header));
  return html`<dt>${status}</dt><dd>${answer.description}${name ? html` ${schemaLink(name)}` : html``}${
    headers.length > 0
      ? html` <small>with ${headers.map((header, index) => html`${index ? ", " : ""}<code>${header}</code>`)}</small>`
      : html``
  }</dd>
`;
}

/** The codes that a refusal may have. */
export function codesOf({ content }: ResponseObject): string[] {
  const { allOf = [] } = (content?.["application/problem+json"]?.schema ?? {}) as JsonSchema;
  return allOf.flatMap(
    (part) => ((part as JsonSchema).properties?.code as JsonSchema | undefined)?.enum ?? [],
  ) as string[];
}

function exampleAnswer(schemas: Schemas, { summary, responses }: OperationObject): Html {
  const [status, answer] = Object.entries(responses).find(([, response]) => schemaOf(response)) ?? [];
  const example = exampleOf(find(schemas, answer && schemaOf(answer))?.schema);
  if (example === undefined) return html``;
  return html`<details><summary>Answer ${status}</summary>${listing(`Answer of ${summary}`, pretty(example))}</details>`;
}
