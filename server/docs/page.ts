import { assetAddress } from "../ui/asset-files.ts";
import { icon, linkButton } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { BRAND, document } from "../ui/page.ts";
import type { DocsPage } from "./guides.ts";
import { renderMarkdown, type Section } from "./markdown.ts";
import { REFERENCE } from "./reference.ts";
import type { Result } from "./search.js";

/** Renders a page within the navigation of all of them. */
export function docsPage(pages: readonly DocsPage[], page: DocsPage): string {
  const { path, title, description } = page;
  const { body, sections } = renderMarkdown(page.markdown);
  const examples = page.examples && renderMarkdown(page.examples).body;
  const markdown = `${path === "/docs" ? "/docs/README" : path}.md`;
  const main = html`<div class="pagetop">${page.section && html`<p class="crumb">${page.group ?? page.section}</p>`}<button type="button" class="quiet small" data-markdown="${markdown}">${icon("copy")}Copy page</button> <a href="${markdown}">Markdown</a></div>
<article${examples && html` class="withexamples"`}><div class="prose">${body}</div>
${examples && html`<div class="prose examples">${examples}</div>`}</article>
${neighbors(pages, path)}`;
  const head = html`
<link rel="alternate" type="text/markdown" href="${markdown}">${
    description &&
    html`
<meta name="description" content="${description.replaceAll("`", "")}">`
  }`;
  return layout(pages, { path, title, main, aside: !examples && contents(sections), head });
}

/** Renders the results of a search, for browsers without JavaScript. */
export function searchPage(pages: readonly DocsPage[], query: string, results: readonly Result[]): string {
  const found = results.map(
    ({ title, page, href, excerpt }) =>
      html`<li><a href="${href}">${page}${title && html` · ${title}`}</a><p class="soft">${excerpt}</p></li>
`,
  );
  const none = query ? "No page matches. Try other words." : "Type what you look for into the field above.";
  return layout(pages, {
    path: "/docs/search",
    title: query ? `Search: ${query}` : "Search",
    main: html`<div class="prose">
<h1>${query ? `Results for “${query}”` : "Search"}</h1>
${found.length > 0 ? html`<ol class="found">${found}</ol>` : html`<p>${none}</p>`}
</div>`,
    head: html`
<meta name="robots" content="noindex">`,
    query,
  });
}

type Layout = { path: string; title: string; main: Html; aside?: Html | false; head: Html; query?: string };

function layout(pages: readonly DocsPage[], { path, title, main, aside, head, query = "" }: Layout): string {
  return document(
    path === "/docs" ? title : `${title} · Documentation`,
    html`<body class="dashboard docs">
<a class="visually-hidden" href="#content">Skip to content</a>
<header class="top"><a class="brand" href="/docs">${BRAND}<span class="soft">Docs</span></a>
<form role="search" action="/docs/search" class="finder"><input type="search" name="q" value="${query}" placeholder="Search" aria-label="Search the documentation" autocomplete="off"></form>
<div class="end"><a class="tool" href="/v1/openapi.json">OpenAPI</a>${linkButton("/dashboard", "Dashboard", "quiet")}</div></header>
<div class="columns">
<div class="pagesbutton"><button type="button" class="quiet" popovertarget="pages">${icon("chevron-down")}All pages</button></div>
${navigation(pages, path)}
<main id="content" tabindex="-1">
${main}
</main>
${aside}
</div>
</body>`,
    {
      extraHead: html`
<link rel="stylesheet" href="${assetAddress("dashboard.css")}">
<link rel="stylesheet" href="${assetAddress("docs.css")}">
<script src="${assetAddress("docs.js")}" type="module"></script>${head}`,
    },
  );
}

function navigation(pages: readonly DocsPage[], current: string): Html {
  const linkTo = ({ path, title, method }: Pick<DocsPage, "path" | "title" | "method">) =>
    html`<li><a href="${path}"${path === current && html` aria-current="page"`}>${title}${method && html` <small class="method ${method}">${method}</small>`}</a></li>
`;
  const groupOf = ([group, members]: [string, DocsPage[]]) => {
    if (members[0]?.group === undefined) return members.map(linkTo);
    if (!current.startsWith(REFERENCE))
      return linkTo({ path: `${REFERENCE}#${group.toLowerCase()}`, title: group });
    const isOpen = members.some(({ path }) => path === current);
    return html`<li><details${isOpen && html` open`}><summary>${icon("chevron-right")}${group}</summary><ul>${members.map(linkTo)}</ul></details></li>
`;
  };
  const sections = Map.groupBy(listed(pages), ({ section }) => section);
  return html`<nav class="sidebar" id="pages" popover aria-label="Documentation"><ul>${linkTo({ path: "/docs", title: "Overview" })}</ul>
${[...sections].map(
  ([section, members]) => html`<p class="part">${section}</p><ul>
${[...Map.groupBy(members, ({ group, path }) => group ?? path)].map(groupOf)}</ul>
`,
)}</nav>`;
}

/** Returns the pages of the navigation. */
export function listed(pages: readonly DocsPage[]): DocsPage[] {
  return pages.filter(({ section }) => section !== undefined);
}

function contents(sections: readonly Section[]): Html {
  const shown = sections.filter(({ depth }) => depth === 2 || depth === 3);
  if (shown.length < 2) return html``;
  return html`<nav class="contents" aria-label="On this page"><p class="part">On this page</p><ul>
${shown.map(
  ({ id, title, depth }) => html`<li${depth === 3 && html` class="deeper"`}><a href="#${id}">${title}</a></li>
`,
)}</ul></nav>`;
}

function neighbors(pages: readonly DocsPage[], path: string): Html {
  const ordered = [...pages.slice(0, 1), ...listed(pages)];
  const index = ordered.findIndex((page) => page.path === path);
  if (index === -1) return html``;
  const linkTo = (page: DocsPage | undefined, rel: string, label: string) =>
    page &&
    html`<a class="button quiet" rel="${rel}" href="${page.path}"><small class="soft">${label}</small> ${page.title}</a>`;
  return html`<nav class="neighbors" aria-label="Pages before and after">${linkTo(ordered[index - 1], "prev", "Previous")}${linkTo(ordered[index + 1], "next", "Next")}</nav>`;
}
