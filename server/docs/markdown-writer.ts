import type { DocsPage } from "./guides.ts";

type Part = string | false | undefined;

/** Writes a page of parts below its title. */
export function writePage(page: Omit<DocsPage, "markdown">, parts: readonly Part[]): DocsPage {
  return { ...page, markdown: `${paragraphs([`# ${page.title}`, ...parts])}\n` };
}

/** Joins the parts that there are. */
export function paragraphs(parts: readonly Part[]): string {
  return parts.filter(Boolean).join("\n\n");
}

export function tableOf(head: string[], rows: string[][]): string {
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

export function codeBlock(language: string, code: string, title?: string): string {
  return `\`\`\`${language}${title ? ` title="${title}"` : ""}\n${code}\n\`\`\``;
}

export function jsonBlock(value: unknown): string {
  return codeBlock("json", JSON.stringify(value, null, 2));
}
