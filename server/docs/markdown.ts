import { Marked, type Token, type Tokens } from "marked";
import { type Html, html, trusted } from "../ui/html.ts";

export type Heading = { id: string; title: string; depth: number };

/** The part of a page below a heading. `text` is plain, for the search. */
export type Section = Heading & { text: string };

export type Rendered = { body: Html; headings: Heading[]; sections: Section[] };

// Markdown has none itself.
const COMMENT = /^<!--(?:(?!-->)[\s\S])*-->\s*$/;

/** The tables whose rows are a name, a detail and a text. They are shown as lists, which fit on phones. */
const LISTS = ["Field,Type,Description", "Setting,Default,Description", "Code,Status,Meaning"];

type Tabs = Tokens.Generic & { type: "tabs"; blocks: Tokens.Code[] };

/**
 * Renders Markdown as HTML. HTML in the Markdown is escaped, and links lead to http, https and mailto URLs or to this
 * server only. Consecutive code blocks with a title become tabs. `prefix` keeps IDs apart if a page has several parts.
 */
export function renderMarkdown(markdown: string, prefix = ""): Rendered {
  const headings: Heading[] = [];
  const renderer = createRenderer(prefix, headings);
  const tokens = groupTabs(renderer.lexer(markdown));
  return { body: trusted(renderer.parser(tokens)), headings, sections: sectionsOf(tokens) };
}

function createRenderer(prefix: string, headings: Heading[]): Marked {
  const ids = createIds();
  let tabs = 0;
  return new Marked({
    extensions: [
      {
        name: "tabs",
        renderer: (token) => tabsView((token as Tabs).blocks, `${prefix}tabs-${++tabs}`).toString(),
      },
    ],
    renderer: {
      // A comment is for those who edit the file.
      html: ({ text }) => (COMMENT.test(text) ? "" : html`${text}`.toString()),
      code: (block) => codeView(block).toString(),
      heading({ depth, tokens }) {
        const title = plain(tokens);
        const content = this.parser.parseInline(tokens);
        if (depth === 1) return `<h1>${content}</h1>\n`;
        const id = prefix + ids(title);
        headings.push({ id, title, depth });
        const anchored = content.includes("<a ") ? content : html`<a href="#${id}">${trusted(content)}</a>`;
        return `<h${depth} id="${id}">${anchored}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const content = trusted(this.parser.parseInline(tokens));
        const target = safeTarget(href);
        return (target === undefined ? content : html`<a href="${target}">${content}</a>`).toString();
      },
      image({ href, text }) {
        // The content security policy allows images of this server only.
        return (
          isOwn(href) ? html`<img src="${href}" alt="${text}" loading="lazy">` : html`${text}`
        ).toString();
      },
      table({ header, rows }) {
        // Long tables are a fifth smaller without the end tags, which HTML allows to omit.
        const row = (cells: Tokens.TableCell[], name: "th" | "td") =>
          `<tr>${cells.map(({ text, tokens }) => `<${text ? name : "td"}>${this.parser.parseInline(tokens)}`).join("")}\n`;
        const hasHead = header.some(({ text }) => text !== "");
        const isList = LISTS.includes(header.map(({ text }) => text).join());
        return `<div class="scroll" tabindex="0"><table${isList ? ' class="fields"' : ""}>${hasHead ? `<thead>${row(header, "th")}</thead>` : ""}
<tbody>${rows.map((cells) => row(cells, "td")).join("")}</tbody></table></div>\n`;
      },
    },
  });
}

/** Returns the target of a link, or undefined if following it could run a script. Links to Markdown lead to the page. */
function safeTarget(href: string): string | undefined {
  if (!/^(https?:\/\/|mailto:|#)/i.test(href) && !isOwn(href)) return undefined;
  return href.replace(/^(\/docs\/[^#]*)\.md(?=#|$)/, "$1").replace(/^\/docs\/README(?=#|$)/, "/docs");
}

function isOwn(href: string): boolean {
  return /^\/(?!\/)/.test(href);
}

/** Creates IDs as GitHub does, so links between the files work there and here. */
function createIds(): (title: string) => string {
  const counts = new Map<string, number>();
  return (title) => {
    const id = title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    const count = counts.get(id) ?? 0;
    counts.set(id, count + 1);
    return count === 0 ? id : `${id}-${count}`;
  };
}

function plain(tokens: Token[]): string {
  return tokens
    .map((token) => ("tokens" in token && token.tokens ? plain(token.tokens) : textOf(token)))
    .join("");
}

function textOf(token: Token): string {
  return "text" in token ? token.text : token.raw;
}

/** Joins code blocks with a title that follow each other, also within lists. */
function groupTabs(tokens: Token[]): Token[] {
  const grouped: Token[] = [];
  for (const token of tokens) {
    if (token.type === "list") for (const item of token.items) item.tokens = groupTabs(item.tokens);
    const last = grouped.at(-1);
    if (token.type === "space" && last?.type === "tabs") continue;
    if (token.type !== "code" || titleOf(token as Tokens.Code) === undefined) grouped.push(token);
    else if (last?.type === "tabs") last.blocks.push(token);
    else grouped.push({ type: "tabs", raw: "", blocks: [token] });
  }
  return grouped;
}

function titleOf({ lang = "" }: Tokens.Code): string | undefined {
  return / title="([^"]+)"/.exec(lang)?.[1];
}

function codeView({ text }: Tokens.Code): Html {
  return html`<div class="block"><pre tabindex="0"><code>${text}</code></pre></div>\n`;
}

/** Without a script, the radio buttons switch by style. */
function tabsView(blocks: Tokens.Code[], name: string): Html {
  const titles = blocks.map((block) => titleOf(block));
  return html`<fieldset class="tabs"><legend class="visually-hidden">${blocks.length > 1 ? "Language" : titles[0]}</legend>
${
  blocks.length > 1
    ? titles.map(
        (title, index) =>
          html`<input type="radio" name="${name}" id="${name}-${index}" value="${title}"${index === 0 && html` checked`}><label for="${name}-${index}">${title}</label>`,
      )
    : html`<p class="caption">${titles[0]}</p>`
}
${blocks.map(codeView)}</fieldset>
`;
}

/** Splits a page at its headings. The first section, without an ID, is the introduction. */
function sectionsOf(tokens: Token[]): Section[] {
  const ids = createIds();
  const sections: Section[] = [];
  for (const token of tokens) {
    if (token.type === "heading") {
      const { depth } = token as Tokens.Heading;
      const title = plain(token.tokens ?? []);
      sections.push({ id: depth === 1 ? "" : ids(title), title, depth, text: "" });
      continue;
    }
    const section = sections.at(-1);
    if (section) section.text += ` ${searchable(token)}`;
  }
  return sections;
}

function searchable(token: Token): string {
  const source = token.type === "tabs" ? (token as Tabs).blocks[0]?.text : token.raw;
  return String(source)
    .replaceAll(/\]\([^()]*\)|<[^<>]*>/g, " ")
    .replaceAll(/^ *[-*] |[`*|#>[\]()"\\]|-{2,}/gm, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}
