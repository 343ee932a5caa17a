import { existsSync, readFileSync } from "node:fs";
import { lazy } from "../../resources/lazy.ts";
import type { Documentation } from "../../resources/mcp/resources.ts";

const FOLDER = new URL("../../docs/", import.meta.url);
// A row of a table in docs/README.md. Files outside the folder aren't pages.
const ROW = /^\| \[.*?\]\((?!\.\.)(\S+)\.md\) \| (.*?) \|$/gm;

/** Creates the documentation from the Markdown files that docs/README.md lists. An image may leave them out. */
export function createDocumentation(): Documentation {
  const textOf = (name: string) => readFileSync(new URL(`${name}.md`, FOLDER), "utf8");
  const pages = lazy(() =>
    existsSync(FOLDER)
      ? [...textOf("README").matchAll(ROW)].map(([, name = "", description = ""]) => ({
          path: `/docs/${name}`,
          title: /^# (.*)$/m.exec(textOf(name))?.[1] ?? name,
          description,
        }))
      : [],
  );
  return {
    pages,
    read: (path) =>
      pages().some((page) => page.path === path) ? textOf(path.replace("/docs/", "")) : undefined,
  };
}
