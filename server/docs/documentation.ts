import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { Resources } from "../../resources/index.ts";
import { lazy } from "../../resources/lazy.ts";
import { isReserved } from "../../resources/links/rules.ts";
import type { Documentation } from "../../resources/mcp/resources.ts";
import { WEBHOOK_EVENT_SCHEMAS } from "../../resources/webhooks/event-schemas.ts";
import { errorPages } from "./errors.ts";
import { createReplaceUrls, type DocsPage, listFiles, readGuides } from "./guides.ts";
import { referencePages } from "./reference.ts";

export type Library = Documentation & {
  all(): readonly DocsPage[];
  find(path: string): DocsPage | undefined;
  /** Returns the file at an address, such as that of an image, or undefined. */
  file(path: string): URL | undefined;
};

type Options = {
  urls: PublicUrls;
  /** Called on first use, so that what is documented may itself use the documentation. */
  describe(): Pick<Resources, "document" | "tools">;
};

/** Reads the guides and describes the API on first use, because that takes longer than the rest of the startup. */
export function createDocumentation({ urls, describe }: Options): Library {
  const { base } = urls;
  const files = lazy(listFiles);
  const byPath = lazy(() => {
    const { document, tools } = describe();
    const content = { base, document: document(), tools };
    const pages = [
      ...readGuides(files(), createReplaceUrls(urls, isReservedWord)),
      ...referencePages({ ...content, events: WEBHOOK_EVENT_SCHEMAS }),
      ...errorPages(content),
    ];
    return new Map(pages.map((page) => [page.path, page]));
  });
  const all = () => [...byPath().values()];
  return {
    all,
    find: (path) => byPath().get(path),
    file: (path) => files().get(path),
    pages: () =>
      all()
        .filter(({ section }) => section !== undefined)
        .map(({ path, title, description }) => ({ path, title, description })),
    /** Links are absolute. */
    read(path) {
      const page = byPath().get(path);
      return page && markdownOf(page).replaceAll("](/", `](${base}/`);
    },
  };
}

/** A host of its own for short links is configured, so what isn't reserved on it belongs to links. */
function isReservedWord(segment: string): boolean {
  return isReserved(segment, { ownHosts: new Set(), ownWords: new Set() });
}

function markdownOf({ markdown, examples }: DocsPage): string {
  return examples === undefined ? markdown : `${markdown}\n${examples}`;
}
