import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { lexer, type Token, type Tokens } from "marked";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { lazy } from "../../resources/lazy.ts";
import { isReserved, NO_NAMES } from "../../resources/links/rules.ts";

/** A page of the documentation. */
export type DocsPage = {
  /** Its address, such as `/docs/webhooks`. */
  path: string;
  title: string;
  /** In a few words; empty for the start page. */
  description: string;
  /** The heading above it in the navigation; undefined for pages that aren't there. */
  section?: string;
  /** Within the section, such as `Links`. */
  group?: string;
  method?: string;
  /** With the addresses of this server. Links lead to the Markdown of other pages. */
  markdown: string;
  /** Markdown that wide screens show beside the rest. */
  examples?: string;
};

const ROOT = new URL("../../", import.meta.url);
const FOLDER = new URL("docs/", ROOT);
export const START = "/docs";
// If short links have a host of their own, what isn't reserved on it belongs to links.

/** The files below `docs/` that a page may link to, by their address. */
export function listFiles(): ReadonlyMap<string, URL> {
  const files = readdirSync(FOLDER, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return new Map(
    files.map(({ parentPath, name }) => {
      const file = path.relative(FOLDER.pathname, path.join(parentPath, name));
      return [`/docs/${file}`, new URL(file, FOLDER)];
    }),
  );
}

/** Returns a function that returns what follows a heading of a page of `docs/`. The page is read once. */
export function pageReader(name: string): (heading: string) => Token[] {
  const tokens = lazy(() => lexer(readFileSync(new URL(name, FOLDER), "utf8")));
  return (heading) => {
    const index = tokens().findIndex((token) => token.type === "heading" && token.text === heading);
    if (index < 0) throw new Error(`docs/${name} has no heading “${heading}”`);
    return tokens().slice(index + 1);
  };
}

/** Reads the pages that the tables of `docs/README.md` list, in their order. */
export function readGuides(files: ReadonlyMap<string, URL>, urls: PublicUrls): DocsPage[] {
  const start = readFileSync(new URL("README.md", FOLDER), "utf8");
  const guides = rowsOf(start).map((row) => {
    const text = readFileSync(new URL(row.file, ROOT), "utf8");
    return { ...row, text, title: /^# (.*)$/m.exec(text)?.[1] ?? row.file };
  });
  const others = [...files.keys()].filter((address) => !address.endsWith(".md"));
  const targets = new Map<string, Target>([
    ...["/docs/README.md", ...others].map((address) => [address.slice(1), { address }] as const),
    ...guides.map(({ file, title }) => [file, { address: addressOf(file), title }] as const),
  ]);
  const resolve = (file: string, text: string) => replaceUrls(resolveLinks(text, file, targets), urls);
  return [
    { path: START, title: "Documentation", description: "", markdown: resolve("docs/README.md", start) },
    ...guides.map(
      ({ file, section, title, description, text }): DocsPage => ({
        path: addressOf(file).replace(/\.md$/, ""),
        title,
        description,
        section,
        markdown: resolve(file, text),
      }),
    ),
  ];
}

/** Replaces the address of the documented server. */
export function replaceUrls(text: string, urls: PublicUrls): string {
  return text.replaceAll(/http:\/\/localhost:3000(?:\/([\w-]*))?/g, (_, segment?: string) => {
    if (segment === undefined) return urls.base;
    if (segment === "v1") return urls.api;
    if (segment === "mcp") return urls.mcp;
    const isOwn = segment === "" || isReserved(segment, NO_NAMES);
    return `${isOwn ? urls.base : urls.short}/${segment}`;
  });
}

type Target = { address: string; title?: string };
type Row = { file: string; section: string; description: string };

function rowsOf(start: string): Row[] {
  let section = "";
  return lexer(start).flatMap((token) => {
    if (token.type === "heading") section = token.text;
    if (token.type !== "table") return [];
    return (token as Tokens.Table).rows.flatMap(([first, second]): Row[] => {
      const [link] = first?.tokens ?? [];
      if (link?.type !== "link" || !second) return [];
      return [{ file: path.posix.join("docs", link.href), section, description: second.text }];
    });
  });
}

/** A file of the root, such as SECURITY.md, is a page beside the others. */
function addressOf(file: string): string {
  return file.startsWith("docs/") ? `/${file}` : `/docs/${file.toLowerCase()}`;
}

const LINK = /\[([^[\]]*)\]\(([^()\s#:]*)(#[^()\s]*)?\)/g;

/**
 * Makes links between files absolute, and replaces file names by titles. What this server doesn't have, such as source
 * files, isn't linked.
 */
function resolveLinks(text: string, file: string, targets: ReadonlyMap<string, Target>): string {
  const folder = path.posix.dirname(file);
  const resolveLink = (link: string, label: string, name: string, fragment = "") => {
    if (name === "") return link;
    const target = targets.get(path.posix.join(folder, name));
    if (!target) return label;
    const { address, title = label } = target;
    return `[${label.endsWith(".md") ? title : label}](${address}${fragment})`;
  };
  let isCode = false;
  const resolveLine = (line: string) => {
    if (/^ *```/.test(line)) isCode = !isCode;
    return isCode ? line : line.replaceAll(LINK, resolveLink);
  };
  return text.split("\n").map(resolveLine).join("\n");
}
