import { setImmediate } from "node:timers/promises";
import MiniSearch from "minisearch";
import { ERRORS } from "./errors.ts";
import type { DocsPage } from "./guides.ts";
import { sectionsOf } from "./markdown.ts";
import { type Entry, OPTIONS } from "./search.js";

const EXCERPT = 110;
// Of the sections that the navigation lists last.
const LEAST_WEIGHT = 0.25;
// Its name finds the page of an error code nevertheless.
const ERROR_WEIGHT = 0.1;
// What a page says first is looked for most.
const NEXT_SECTION = 0.97;

/**
 * Indexes the sections of guides, and the pages of operations and error codes as a whole. Other requests are served
 * between two pages.
 */
export async function buildIndex(pages: readonly DocsPage[]): Promise<MiniSearch<Entry>> {
  const index = new MiniSearch<Entry>(OPTIONS);
  const order = [...new Set(pages.flatMap(({ section }) => section ?? []))];
  for (const page of pages) {
    const isError = page.path.startsWith(`${ERRORS}/`);
    const weight = isError ? ERROR_WEIGHT : weightOf(order.indexOf(page.section ?? ""));
    for (const entry of entriesOf(page, weight)) index.add({ ...entry, id: index.documentCount });
    await setImmediate();
  }
  return index;
}

/** What the navigation lists first is read most. */
function weightOf(place: number): number {
  return place === -1 ? LEAST_WEIGHT : Math.max(LEAST_WEIGHT, 1 / (place + 1));
}

function entriesOf({ path, title, group, markdown }: DocsPage, weight: number): Omit<Entry, "id">[] {
  const sections = sectionsOf(markdown);
  const entryOf = (heading: string, href: string, text: string) => ({
    title: heading,
    page: title,
    href,
    excerpt: text.length > EXCERPT ? `${text.slice(0, text.lastIndexOf(" ", EXCERPT))} …` : text,
    text,
    weight,
  });
  if (group !== undefined) return [entryOf(group, path, sections.map(({ text }) => text.trim()).join(" "))];
  if (path.startsWith(`${ERRORS}/`)) return [entryOf("Error code", path, sections[0]?.text.trim() ?? "")];
  return sections.map(({ id, title: heading, text }, index) => ({
    ...entryOf(id === "" ? "" : heading, id === "" ? path : `${path}#${id}`, text.trim()),
    weight: weight * NEXT_SECTION ** index,
  }));
}
