import { createReadStream } from "node:fs";
import test from "ava";
import { toInput } from "../../resources/links/import/convert.ts";
import { readLinkFile } from "../../resources/links/import/read-file.ts";
import { NO_NAMES } from "../../resources/links/rules.ts";
import { linkSchemas } from "../../resources/links/schema.ts";

/** Links of Short.io, whose exports say most of their links. */
const LINKS = [
  ["spring", "?from=mail&id=1", 'The "spring" sale, 50 % off; today', ["mail", "sale"]],
  ["jobs", "", null, []],
  ["path", "", String.raw`Café C:\new\table, "quoted"`, ["größe"]],
].map(([slug, query, title, tags], index) => ({
  ...{ url: `https://acme.example/${slug}${query}`, slug, title, tags },
  clicks: [1284, 0, 37][index],
  createdAt: ["2024-03-21T09:30:00.000Z", "2023-11-20T16:05:00.000Z", "2024-12-31T23:59:00.000Z"][index],
  archived: slug === "jobs",
}));

const EXPORTS: Record<string, string> = {
  SQLite: "sqlite.csv", // sqlite3 -header -csv
  PostgreSQL: "postgresql.csv", // \copy links to links.csv csv header
  // into outfile … fields terminated by ',' enclosed by '"', with a first row of names by union
  "MariaDB, enclosed in quotes": "mariadb-quotes.csv",
  // into outfile without options
  "MariaDB, separated by tabs": "mariadb-tabs.csv",
  "German Excel": "german-excel.csv",
  "a JSON API": "api.json",
};

const schema = linkSchemas(NO_NAMES).imported;

/** Reads a file as far as an import checks it: each link, or why its row can't be read. */
async function read(name: string) {
  const file = new URL(`link-imports/exports/${name}`, import.meta.url);
  const { format, rows } = await readLinkFile(() => createReadStream(file));
  return (await Array.fromAsync(rows)).map(({ fields, refusal }) => {
    const { input, refusal: other } = toInput(fields, format);
    return refusal ?? other ?? schema.safeParse(input);
  });
}

for (const [program, file] of Object.entries(EXPORTS))
  test(`a table that ${program} writes is imported as it was`, async (t) => {
    const links = (await read(file)).map((result) => {
      if (typeof result === "string" || !result.success) return result;
      const { url, slug, title = null, tags = [], clicks, created_at = "", archived } = result.data;
      return { url, slug, title, tags, clicks, createdAt: new Date(created_at).toISOString(), archived };
    });
    t.deepEqual<unknown, unknown>(links, LINKS);
  });
