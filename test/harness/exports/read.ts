import type { ExecutionContext } from "ava";
import { toInput } from "../../../resources/links/import/convert.ts";
import { readLinkFile } from "../../../resources/links/import/read-file.ts";
import { linkSchemas } from "../../../resources/links/schema.ts";
import { type ExportedLink, LINKS } from "./services.ts";

const schema = linkSchemas({ ownHosts: new Set(), ownWords: new Set() }).imported;

/** Reads a file as far as an import checks it. A link is what the schema says of it, or why its row can't be read. */
export async function readExport(text: string) {
  const { format, rows } = await readLinkFile(async function* () {
    yield Buffer.from(text);
  });
  const links = (await Array.fromAsync(rows)).map(({ fields, refusal }) => {
    const { input, refusal: other } = toInput(fields, format);
    return refusal ?? other ?? schema.safeParse({ slug: "-", ...input });
  });
  return { format: format.name, links };
}

/** Fails unless each link has all that the service says of it. */
export function keepsLinks(
  t: ExecutionContext,
  links: Awaited<ReturnType<typeof readExport>>["links"],
  keeps: (keyof ExportedLink)[],
): void {
  const stored = links.map((result) => {
    if (typeof result === "string" || !result.success) return result;
    const { url, slug, title = null, tags, clicks, created_at, archived } = result.data;
    return { url, slug, title, tags, clicks, createdAt: new Date(created_at ?? ""), archived };
  });
  t.deepEqual(
    stored,
    LINKS.map((link) => ({
      ...link,
      tags: keeps.includes("tags") && link.tags.length > 0 ? link.tags : undefined,
      archived: keeps.includes("archived") ? link.archived : undefined,
    })),
  );
}
