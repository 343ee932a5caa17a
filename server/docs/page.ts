import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { inputSchemaOf, type Tool } from "../../resources/mcp/tool.ts";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { type JsonSchema, toJsonSchema } from "../../resources/openapi/json-schema.ts";
import { assetAddress } from "../ui/asset-files.ts";
import { badge } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { BRAND, document as wholePage } from "../ui/page.ts";
import { type Codes, codesView } from "./codes.ts";
import { exampleOf } from "./examples.ts";
import { type Chapter, guide } from "./guide.ts";
import { type LocatedOperation, operationView } from "./operation.ts";
import { listing, pretty, prose } from "./prose.ts";
import { type Field, fieldsOf, fieldTable } from "./schema.ts";

/** What the page shows. */
export type DocsContent = {
  document: OpenApiDocument;
  tools: readonly Tool[];
  urls: PublicUrls;
  codes: Codes;
};

type Entry = { id: string; title: string };

/** Renders the documentation from the schemas that validate and serve requests, so it can't deviate from them. */
export function docsPage({ document, tools, urls, codes }: DocsContent): string {
  const operations = operationsOf(document, urls.base);
  const byTag = Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? "");
  const chapters: Chapter[] = [
    ...guide(urls, exampleOf(document.components.schemas.Problem)),
    ...[...byTag].map(([tag, located]) => ({
      id: `api-${tag.toLowerCase()}`,
      title: tag,
      body: html`${located.map((operation) => operationView(document, operation))}`,
    })),
    { id: "mcp", title: "MCP", body: mcp(urls, tools) },
    { id: "objects", title: "Objects", body: objects(document) },
    { id: "codes", title: "Error codes", body: codesView(codes) },
  ];
  const entriesOf = (title: string): Entry[] =>
    title === "MCP"
      ? tools.map(({ name }) => ({ id: toolAnchor(name), title: name }))
      : (byTag.get(title) ?? []).map(({ operation }) => ({
          id: operation.operationId,
          title: operation.summary,
        }));

  return wholePage(
    "API documentation",
    html`<body class="dashboard docs">
<a class="skip" href="#content">Skip to content</a>
<header class="top"><a class="brand" href="/docs">${BRAND}</a> <span class="soft">API ${document.info.version}</span>
<nav class="links" aria-label="Related"><a href="/v1/openapi.json">OpenAPI</a> <a href="/dashboard">Dashboard</a></nav></header>
<div class="columns">
<nav class="sections" aria-label="Contents"><ul>
${chapters.map(
  ({ id, title }) => html`<li><a href="#${id}">${title}</a>${contents(entriesOf(title))}</li>
`,
)}</ul></nav>
<main id="content" tabindex="-1">
<h1>API documentation</h1>
${chapters.map(
  ({ id, title, body }) => html`<section class="chapter" id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${body}
</section>
`,
)}</main>
</div>
</body>`,
    html`
<link rel="stylesheet" href="${assetAddress("dashboard.css")}">
<link rel="stylesheet" href="${assetAddress("docs.css")}">`,
  );
}

function contents(entries: Entry[]): Html {
  if (entries.length === 0) return html``;
  return html`<ul>${entries.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul>`;
}

function operationsOf({ paths }: OpenApiDocument, base: string): LocatedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ base, method, path, operation })),
  );
}

function mcp({ mcp: url }: PublicUrls, tools: readonly Tool[]): Html {
  const server = { mcpServers: { linkgate: { type: "http", url } } };
  return html`<p>Agents can use everything the REST API offers through MCP, over Streamable HTTP at <code>${url}</code>, with the same rules and
limits. The server supports revision 2026-07-28 and the 2025 revisions. MCP hosts discover where to sign in, and list only the tools
that their token allows. Calling another tool returns 403 with the scope to request.</p>
${listing("MCP host configuration", pretty(server))}
<p>A tool that fails returns <code>isError</code> and an error as JSON; <code>next</code> says what to do:</p>
${listing(
  "Tool error",
  pretty({
    status: 409,
    code: "slug_taken",
    detail: "slug: This slug is taken.",
    next: "Choose another slug, or omit it for a random one.",
    request_id: "0b9d6a3c-7f0e-4f0e-9a55-3c9d1f6a2b10",
  }),
)}
<div class="tools">${toolsView(tools)}</div>`;
}

/** Renders the MCP tools with their description, scopes and parameters. */
function toolsView(tools: readonly Tool[]): Html {
  return html`${tools.map(
    (tool) => html`<details class="tool" id="${toolAnchor(tool.name)}">
<summary><code>${tool.name}</code> ${tool.title}</summary>
<p>${prose(tool.description)}</p>
<p>Requires ${tool.scopes.length > 0 ? tool.scopes.map((scope) => badge(scope)) : badge("any token")}${
      tool.annotations.readOnlyHint ? html` ${badge("read-only", "good")}` : html``
    }${tool.annotations.destructiveHint ? html` ${badge("destructive", "warn")}` : html``}</p>
${parametersOf(tool)}
</details>
`,
  )}`;
}

/** Returns the fragment of a tool's entry on the page. */
function toolAnchor(name: string): string {
  return `tool-${name}`;
}

function parametersOf(tool: Tool): Html {
  const { name } = tool;
  const fields = fieldsOf(toJsonSchema(inputSchemaOf(tool), "input"));
  return fields.length > 0 ? fieldTable(`Parameters of ${name}`, fields) : html`<p>No parameters.</p>`;
}

/** Returns the fields of an object; in responses, marks optional fields instead of required ones. */
function displayedFields(schema: JsonSchema): Field[] {
  const fields = fieldsOf(schema);
  const isRequest = schema.additionalProperties === false;
  if (isRequest) return fields;
  return fields.map(({ required, ...field }) => ({
    ...field,
    required: false,
    ...(!required && { place: "optional" }),
  }));
}

/** Renders the objects of requests and responses. */
function objects({ components: { schemas } }: OpenApiDocument): Html {
  return html`${Object.entries(schemas).map(
    ([name, schema]) => html`<section class="object" id="${name}">
<h3>${name}</h3>
${fieldTable(`Fields of ${name}`, displayedFields(schema))}
<details><summary>Example<span class="visually-hidden"> of ${name}</span></summary>${listing(
      `Example of ${name}`,
      pretty(exampleOf(schema)),
    )}</details>
</section>
`,
  )}`;
}
