import { lexer, Marked, type Token, type Tokens } from "marked";
import { type Html, html, trusted } from "../ui/html.ts";

/** The part of a page below a heading; the introduction has no ID. `text` is plain, for the search. */
export type Section = { id: string; title: string; depth: number; text: string };

// Markdown has none itself.
const COMMENT = /^<!--(?:(?!-->)[\s\S])*-->\s*$/;

/** The tables whose rows are a name, a detail and texts. They are shown as lists, which fit on phones. */
const LISTS = new Set([
  "Field,Type,Description",
  "Setting,Default,Description",
  "Code,Status,Meaning",
  "Code,Status,Meaning,What to do",
]);

type Anchored = Tokens.Heading & { id?: string };
/** A block with a title, and with those that follow it. */
type Tabs = Tokens.Code & { others?: Tokens.Code[] };

/**
 * Renders Markdown as HTML. HTML in the Markdown is escaped, and links lead to http, https and mailto URLs or to this
 * server only. Consecutive code blocks with a title become tabs.
 */
export function renderMarkdown(markdown: string): { body: Html; sections: Section[] } {
  let tabs = 0;
  const renderer = new Marked({
    renderer: {
      // A comment is for those who edit the file.
      html: ({ text }) => (COMMENT.test(text) ? "" : html`${text}`.toString()),
      code: (block: Tabs) =>
        (block.others ? tabsView([block, ...block.others], `tabs-${++tabs}`) : codeView(block)).toString(),
      heading({ id, depth, tokens }: Anchored) {
        const content = this.parser.parseInline(tokens);
        if (!id) return `<h${depth}>${content}</h${depth}>\n`;
        const anchored = content.includes("<a ") ? content : html`<a href="#${id}">${trusted(content)}</a>`;
        return `<h${depth} id="${id}">${anchored}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const content = trusted(this.parser.parseInline(tokens));
        const target = safeTarget(href);
        return (target === undefined ? content : html`<a href="${target}">${content}</a>`).toString();
      },
      // The content security policy allows images of this server only.
      image: ({ href, text }) =>
        (isOwn(href) ? html`<img src="${href}" alt="${text}" loading="lazy">` : html`${text}`).toString(),
      table({ header, rows }) {
        // Long tables are a fifth smaller without the end tags, which HTML allows to omit.
        const row = (cells: Tokens.TableCell[], name: "th" | "td") =>
          `<tr>${cells.map(({ text, tokens }) => `<${text ? name : "td"}>${this.parser.parseInline(tokens)}`).join("")}\n`;
        const titles = header.map(({ text }) => text);
        const isList = LISTS.has(titles.join());
        const head = !isList && titles.some(Boolean) && `<thead>${row(header, "th")}</thead>`;
        return `<div class="scroll" tabindex="0"><table${isList ? ' class="definitions"' : ""}>${head || ""}
<tbody>${rows.map((cells) => row(cells, "td")).join("")}</tbody></table></div>\n`;
      },
    },
  });
  const tokens = groupTabs(lexer(markdown));
  const sections = toSections(tokens);
  return { body: trusted(renderer.parser(tokens)), sections };
}

export function sectionsOf(markdown: string): Section[] {
  return toSections(groupTabs(lexer(markdown)));
}

/** Returns the target of a link, or undefined if following it could run a script. Links to Markdown lead to the page. */
function safeTarget(href: string): string | undefined {
  if (!/^(https?:\/\/|mailto:|#)/i.test(href) && !isOwn(href)) return undefined;
  return href.replace(/^(\/docs\/[^#]*)\.md(?=#|$)/, "$1").replace(/^\/docs\/README(?=#|$)/, "/docs");
}

function isOwn(href: string): boolean {
  return /^\/(?!\/)/.test(href);
}

function plain(tokens: Token[]): string {
  return tokens
    .map((token) => {
      if ("tokens" in token && token.tokens) return plain(token.tokens);
      return "text" in token ? token.text : token.raw;
    })
    .join("");
}

/** Joins code blocks with a title that follow each other, also within lists. */
function groupTabs(tokens: Token[]): Token[] {
  let first: Tabs | undefined;
  return tokens.filter((token) => {
    if (token.type === "list") for (const item of token.items) item.tokens = groupTabs(item.tokens);
    if (token.type === "space") return true;
    const isTitled = token.type === "code" && titleOf(token as Tabs) !== undefined;
    if (isTitled && first) first.others = [...(first.others ?? []), token as Tabs];
    else first = isTitled ? (token as Tabs) : undefined;
    return !isTitled || first === token;
  });
}

function titleOf({ lang = "" }: Tokens.Code): string | undefined {
  return / title="([^"]+)"/.exec(lang)?.[1];
}

function codeView({ text }: Tokens.Code): Html {
  return html`<div class="block"><pre tabindex="0"><code>${text}</code></pre></div>\n`;
}

/** Without a script, the radio buttons switch by style: each one shows the block behind it. */
function tabsView(blocks: Tokens.Code[], name: string): Html {
  return html`<fieldset class="switch"><legend class="visually-hidden">Language</legend>
${blocks.map((block, index) => {
  const id = `${name}-${index}`;
  return html`<input type="radio" name="${name}" id="${id}" value="${titleOf(block)}"${index === 0 && html` checked`}><label for="${id}">${titleOf(block)}</label>${codeView(block)}`;
})}</fieldset>
`;
}

/** Splits a page at its headings, and gives them the IDs of GitHub, so links between files work there and here. */
function toSections(tokens: Token[]): Section[] {
  const counts = new Map<string, number>();
  const sections: Section[] = [];
  for (const token of tokens) {
    const section = sections.at(-1);
    if (token.type !== "heading") {
      if (section) section.text += ` ${searchable(token)}`;
      continue;
    }
    const heading = token as Anchored;
    const title = plain(heading.tokens);
    if (heading.depth > 1) {
      const name = title
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-");
      const count = counts.get(name) ?? 0;
      counts.set(name, count + 1);
      heading.id = count === 0 ? name : `${name}-${count}`;
    }
    sections.push({ id: heading.id ?? "", title, depth: heading.depth, text: "" });
  }
  return sections;
}

/** Of tabs, the code of the first is enough; all of them are found by their titles. */
function searchable(token: Token): string {
  const { others = [] } = token as Tabs;
  const titles = [token as Tabs, ...others].map(titleOf).join(" ");
  return `${token.type === "table" ? textOf(token as Tokens.Table) : token.raw}\n${titles}`
    .replaceAll(/\]\([^()]*\)|<!--[^<>]*>|^ *```.*$|^ *[-*] |[`*[\]\\<>]/gm, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** Cells have something between them: otherwise, a text reads as if they were one sentence. */
function textOf({ rows }: Tokens.Table): string {
  return rows.map((cells) => cells.map(({ text }) => text).join(" · ")).join("; ");
}
