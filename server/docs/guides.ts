import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { lexer, type Token, type Tokens } from "marked";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";

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
  /** The HTTP method of an operation. */
  method?: string;
  /** With the addresses of this server. Links lead to the Markdown of other pages. */
  markdown: string;
  /** Markdown that wide screens show beside the rest. */
  examples?: string;
};

/** Replaces the addresses that the files contain by those of this server. */
export type ReplaceUrls = (text: string) => string;

const ROOT = new URL("../../", import.meta.url);
const FOLDER = new URL("docs/", ROOT);
export const START = "/docs";

/** `isReserved` says whether the first segment of a path belongs to the server itself, not to a short link. */
export function createReplaceUrls(urls: PublicUrls, isReserved: (segment: string) => boolean): ReplaceUrls {
  return (text) =>
    text.replaceAll(/http:\/\/localhost:3000(?:\/([\w-]*))?/g, (_, segment?: string) => {
      if (segment === undefined) return urls.base;
      if (segment === "v1") return urls.api;
      if (segment === "mcp") return urls.mcp;
      return `${segment === "" || isReserved(segment) ? urls.base : urls.short}/${segment}`;
    });
}

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

/** Reads the pages that the tables of `docs/README.md` list, in their order. */
export function readGuides(files: ReadonlyMap<string, URL>, replaceUrls: ReplaceUrls): DocsPage[] {
  const start = readFileSync(new URL("README.md", FOLDER), "utf8");
  const rows = rowsOf(lexer(start));
  const others = [...files.keys()].filter((address) => !address.endsWith(".md"));
  const addresses = new Map([
    ...["/docs/README.md", ...others].map((address): [string, string] => [address.slice(1), address]),
    ...rows.map(({ file }): [string, string] => [file, addressOf(file)]),
  ]);
  const resolve = (file: string, text: string) => replaceUrls(resolveLinks(text, file, addresses));
  return [
    { path: START, title: "Documentation", description: "", markdown: resolve("docs/README.md", start) },
    ...rows.map(({ file, section, title, description }): DocsPage => {
      const text = readFileSync(new URL(file, ROOT), "utf8");
      return {
        path: addressOf(file).replace(/\.md$/, ""),
        title: title.endsWith(".md") ? (/^# (.*)$/m.exec(text)?.[1] ?? title) : title,
        description,
        section,
        markdown: resolve(file, text),
      };
    }),
  ];
}

type Row = { file: string; section: string; title: string; description: string };

function rowsOf(tokens: Token[]): Row[] {
  let section = "";
  return tokens.flatMap((token) => {
    if (token.type === "heading") section = token.text;
    if (token.type !== "table") return [];
    return (token as Tokens.Table).rows.flatMap(([first, second]): Row[] => {
      const [link] = first?.tokens ?? [];
      if (link?.type !== "link" || !second) return [];
      const file = path.posix.join("docs", link.href);
      return [{ file, section, title: link.text, description: second.text }];
    });
  });
}

/** A file of the root, such as SECURITY.md, is a page beside the others. */
function addressOf(file: string): string {
  return file.startsWith("docs/") ? `/${file}` : `/docs/${file.toLowerCase()}`;
}

const FENCED = /^( *```[\s\S]*?^ *```)$/m;
const LINK = /\[((?:[^[\]]|\\.)*)\]\(([^()\s#:]*)(#[^()\s]*)?\)/g;

/** Makes links between files absolute. What this server doesn't have, such as source files, isn't linked. */
function resolveLinks(text: string, file: string, addresses: ReadonlyMap<string, string>): string {
  const folder = path.posix.dirname(file);
  const resolveLink = (link: string, label: string, target: string, fragment = "") => {
    if (target === "") return link;
    const address = addresses.get(path.posix.join(folder, target));
    return address === undefined ? label : `[${label}](${address}${fragment})`;
  };
  return text
    .split(FENCED)
    .map((part) => (/^ *```/.test(part) ? part : part.replaceAll(LINK, resolveLink)))
    .join("");
}
