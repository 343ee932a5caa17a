import type { Tool } from "../../../resources/mcp/tool.ts";
import type { Addresses } from "../../../resources/metadata.ts";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import { type Html, html } from "../html.ts";
import { document as wholePage } from "../page.ts";
import { type Codes, codesView } from "./codes.ts";
import { exampleOf } from "./example.ts";
import { type Chapter, guide } from "./guide.ts";
import { operationView, type Placed } from "./operation.ts";
import { listing, pretty } from "./prose.ts";
import { type Field, fieldsOf, fieldTable } from "./schema.ts";
import { toolAnchor, toolsView } from "./tools.ts";

/** What the page shows. */
export type DocsContent = {
  document: OpenApiDocument;
  tools: readonly Tool[];
  addresses: Addresses;
  codes: Codes;
};

type Entry = { id: string; title: string };

/** The documentation as one page: made from what validates and serves, so that it says the same. */
export function docsPage({ document, tools, addresses, codes }: DocsContent): string {
  const operations = operationsOf(document, addresses.base);
  const byTag = Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? "");
  const chapters: Chapter[] = [
    ...guide(addresses, exampleOf(document.components.schemas.Problem)),
    ...[...byTag].map(([tag, placed]) => ({
      id: `api-${tag.toLowerCase()}`,
      title: tag,
      body: html`${placed.map((one) => operationView(document, one))}`,
    })),
    { id: "mcp", title: "MCP", body: mcp(addresses, tools) },
    { id: "objects", title: "Objects", body: objects(document) },
    { id: "codes", title: "Codes", body: codesView(codes) },
  ];
  const inside = (title: string): Entry[] =>
    title === "MCP"
      ? tools.map(({ name }) => ({ id: toolAnchor(name), title: name }))
      : (byTag.get(title) ?? []).map(({ operation }) => ({
          id: operation.operationId,
          title: operation.summary,
        }));

  return wholePage(
    "API",
    html`<body class="dashboard docs">
<a class="skip" href="#content">Skip to the content</a>
<header class="top"><a class="brand" href="/docs">linkgate</a> <span class="soft">API ${document.info.version}</span>
<nav class="links" aria-label="Elsewhere"><a href="/v1/openapi.json">OpenAPI</a> <a href="/dashboard">Dashboard</a></nav></header>
<div class="columns">
<nav class="sections" aria-label="Contents"><ul>
${chapters.map(
  ({ id, title }) => html`<li><a href="#${id}">${title}</a>${contents(inside(title))}</li>
`,
)}</ul></nav>
<main id="content" tabindex="-1">
<h1>API</h1>
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
<link rel="stylesheet" href="/assets/dashboard.css">
<link rel="stylesheet" href="/assets/docs.css">`,
  );
}

function contents(entries: Entry[]): Html {
  if (entries.length === 0) return html``;
  return html`<ul>${entries.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul>`;
}

function operationsOf({ paths }: OpenApiDocument, base: string): Placed[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ base, method, path, operation })),
  );
}

function mcp({ mcp: url }: Addresses, tools: readonly Tool[]): Html {
  const server = { mcpServers: { linkgate: { type: "http", url } } };
  return html`<p>What the REST API does is there for agents as well, over Streamable HTTP at <code>${url}</code>, in the revision 2026-07-28
and those of 2025: the same rules, the same limits. A host finds out by itself where to sign in. It is shown the tools that its token
may use; calling another one is answered with 403 and the scope to ask for.</p>
${listing("An entry for an MCP host", pretty(server))}
<p>A tool that refuses answers with <code>isError</code> and a problem as JSON, in which <code>next</code> says what to do:</p>
${listing(
  "The refusal of a tool",
  pretty({
    status: 409,
    code: "slug_taken",
    detail: "slug: This slug is taken.",
    next: "Choose another slug, or leave it out for a random one.",
    request_id: "0b9d6a3c-7f0e-4f0e-9a55-3c9d1f6a2b10",
  }),
)}
<div class="tools">${toolsView(tools)}</div>`;
}

/** The fields of an object. Of an answer only those are remarkable that may be missing. */
function shownOf(schema: JsonSchema): Field[] {
  const fields = fieldsOf(schema);
  const isSent = schema.additionalProperties === false;
  if (isSent) return fields;
  return fields.map(({ required, ...field }) => ({
    ...field,
    required: false,
    ...(!required && { place: "not always" }),
  }));
}

/** The objects that operations take and answer. */
function objects({ components: { schemas } }: OpenApiDocument): Html {
  return html`${Object.entries(schemas).map(
    ([name, schema]) => html`<section class="object" id="${name}">
<h3>${name}</h3>
${fieldTable(`Fields of ${name}`, shownOf(schema))}
<details><summary>Example<span class="visually-hidden"> of ${name}</span></summary>${listing(
      `Example of ${name}`,
      pretty(exampleOf(schema)),
    )}</details>
</section>
`,
  )}`;
}
