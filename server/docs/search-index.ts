import MiniSearch from "minisearch";
import { ERRORS } from "./errors.ts";
import type { DocsPage } from "./guides.ts";
import type { Rendered } from "./markdown.ts";
import { type Entry, OPTIONS } from "./search.js";

const EXCERPT = 110;

/** Indexes the sections of guides, and the pages of operations and error codes as a whole. */
export function buildIndex(
  pages: readonly DocsPage[],
  render: (page: DocsPage) => Pick<Rendered, "sections">,
): MiniSearch<Entry> {
  const index = new MiniSearch<Entry>(OPTIONS);
  const entries = pages.flatMap((page) => entriesOf(page, render(page)));
  index.addAll(entries.map((entry, id) => ({ ...entry, id })));
  return index;
}

function entriesOf(page: DocsPage, { sections }: Pick<Rendered, "sections">): Omit<Entry, "id">[] {
  const { path, title } = page;
  const entryOf = (heading: string, href: string, text: string) => ({
    title: heading,
    page: title,
    href,
    excerpt: text.length > EXCERPT ? `${text.slice(0, text.lastIndexOf(" ", EXCERPT))} …` : text,
    text,
  });
  if (page.group !== undefined || path.startsWith(`${ERRORS}/`)) {
    const text = sections.map(({ text }) => text.trim()).join(" ");
    return [
      entryOf(
        page.group ?? "Error code",
        path,
        path.startsWith(ERRORS) ? (sections[0]?.text.trim() ?? "") : text,
      ),
    ];
  }
  return sections.map(({ id, title: heading, text }) =>
    entryOf(id === "" ? "" : heading, id === "" ? path : `${path}#${id}`, text.trim()),
  );
}
