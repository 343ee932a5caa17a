import { assetAddress } from "../ui/asset-files.ts";
import { icon, linkButton } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { BRAND, document } from "../ui/page.ts";
import type { DocsPage } from "./guides.ts";
import type { Heading, Rendered } from "./markdown.ts";
import { REFERENCE } from "./reference.ts";
import type { Result } from "./search.js";

export type Article = { page: DocsPage; rendered: Rendered; examples: Rendered | undefined };

/** Renders a page within the navigation of all of them. `note` is about the signed-in user. */
export function docsPage(pages: readonly DocsPage[], article: Article, note?: string): string {
  const { page, rendered, examples } = article;
  const { path, title, description } = page;
  const markdown = `${path === "/docs" ? "/docs/README" : path}.md`;
  return frame(
    pages,
    path,
    title,
    html`<main id="content" tabindex="-1">
<div class="pagetop">${page.section && html`<p class="crumb">${page.group ?? page.section}</p>`}<p class="copypage"><button type="button" class="quiet small" data-markdown="${markdown}" hidden>${icon("copy")}Copy page</button> <a href="${markdown}">Markdown</a></p></div>
${note && html`<p class="hint">${note}</p>`}
<article${examples && html` class="withexamples"`}><div class="prose">${rendered.body}</div>
${examples && html`<div class="prose examples">${examples.body}</div>`}</article>
${neighbors(pages, path)}
</main>
${!examples && contents(rendered.headings)}`,
    html`
<link rel="alternate" type="text/markdown" href="${markdown}">${
      description &&
      html`
<meta name="description" content="${description.replaceAll("`", "")}">`
    }`,
  );
}

/** Renders the results of a search, for browsers without JavaScript. */
export function searchPage(pages: readonly DocsPage[], query: string, results: readonly Result[]): string {
  const found = results.map(
    ({ title, page, href, excerpt }) =>
      html`<li><a href="${href}">${page}${title && html` · ${title}`}</a><p class="soft">${excerpt}</p></li>
`,
  );
  return frame(
    pages,
    "/docs/search",
    query ? `Search: ${query}` : "Search",
    html`<main id="content" tabindex="-1"><div class="prose">
<h1>${query ? `Results for “${query}”` : "Search"}</h1>
${query === "" ? html`<p>Type what you look for into the field above.</p>` : found.length > 0 ? html`<ul class="found">${found}</ul>` : html`<p>No page matches. Try other words.</p>`}
</div></main>`,
    html`
<meta name="robots" content="noindex">`,
    query,
  );
}

function frame(
  pages: readonly DocsPage[],
  path: string,
  title: string,
  content: Html,
  head: Html,
  query = "",
): string {
  return document(
    path === "/docs" ? title : `${title} · Documentation`,
    html`<body class="dashboard docs">
<a class="skip" href="#content">Skip to content</a>
<header class="top"><a class="brand" href="/docs">${BRAND}<span class="soft">Docs</span></a>
<form role="search" action="/docs/search" class="finder"><input type="search" name="q" value="${query}" placeholder="Search" aria-label="Search the documentation" autocomplete="off"><kbd hidden>/</kbd></form>
<div class="end"><a class="tool" href="/v1/openapi.json">OpenAPI</a>${linkButton("/dashboard", "Dashboard", "quiet")}</div></header>
<div class="columns">
<div class="pagesbutton"><button type="button" class="quiet" popovertarget="pages">${icon("chevron-down")}All pages</button></div>
${navigation(pages, path)}
${content}
</div>
</body>`,
    html`
<link rel="stylesheet" href="${assetAddress("dashboard.css")}">
<link rel="stylesheet" href="${assetAddress("docs.css")}">
<script src="${assetAddress("docs.js")}" type="module"></script>${head}`,
  );
}

function navigation(pages: readonly DocsPage[], current: string): Html {
  const sections = Map.groupBy(
    pages.filter(({ section }) => section !== undefined),
    ({ section }) => section,
  );
  return html`<nav class="sidebar" id="pages" popover aria-label="Documentation"><ul><li>${linkTo({ path: "/docs", title: "Overview" }, current)}</li></ul>
${[...sections].map(
  ([section, listed]) => html`<p class="part">${section}</p><ul>
${[...Map.groupBy(listed, ({ group, path }) => group ?? path)].map(([group, members]) =>
  members[0]?.group === undefined
    ? members.map(
        (page) => html`<li>${linkTo(page, current)}</li>
`,
      )
    : !current.startsWith(REFERENCE)
      ? html`<li><a href="${REFERENCE}#${group.toLowerCase()}">${group}</a></li>
`
      : html`<li><details${members.some(({ path }) => path === current) && html` open`}><summary>${icon("chevron-right")}${group}</summary><ul>${members.map(
          (page) => html`<li>${linkTo(page, current)}</li>
`,
        )}</ul></details></li>
`,
)}</ul>
`,
)}</nav>`;
}

function linkTo({ path, title, method }: Pick<DocsPage, "path" | "title" | "method">, current: string): Html {
  return html`<a href="${path}"${path === current && html` aria-current="page"`}>${title}${method && html` <small class="method ${method}">${method}</small>`}</a>`;
}

function contents(headings: readonly Heading[]): Html {
  const shown = headings.filter(({ depth }) => depth <= 3);
  if (shown.length < 2) return html``;
  return html`<nav class="contents" aria-label="On this page"><p class="part">On this page</p><ul>
${shown.map(
  ({ id, title, depth }) => html`<li${depth === 3 && html` class="deeper"`}><a href="#${id}">${title}</a></li>
`,
)}</ul></nav>`;
}

function neighbors(pages: readonly DocsPage[], path: string): Html {
  const ordered = pages.filter((page) => page.section !== undefined || page.path === "/docs");
  const index = ordered.findIndex((page) => page.path === path);
  if (index === -1) return html``;
  const [previous, next] = [ordered[index - 1], ordered[index + 1]];
  return html`<nav class="neighbors" aria-label="Pages before and after">${
    previous && html`<a rel="prev" href="${previous.path}"><small>Previous</small>${previous.title}</a>`
  }${next && html`<a rel="next" href="${next.path}"><small>Next</small>${next.title}</a>`}</nav>`;
}
