import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { createTestDatabase, engine } from "../../../harness/database/test-database.ts";
import { keepsLinks, readExport } from "../../../harness/exports/read.ts";
import { LINKS, type Row, SERVICES } from "../../../harness/exports/services.ts";
import { skip } from "../../../harness/skip.ts";

export const databases = "all";

const { url, drop } = await createTestDatabase({ empty: true });
const folder = mkdtempSync(path.join(tmpdir(), "linkgate-exports-"));
// MariaDB's server writes it, as a user of its own.
const outfile = `${folder}.txt`;
test.after.always(async () => {
  rmSync(folder, { recursive: true });
  rmSync(outfile, { force: true });
  await drop();
});

const { format = "", keeps = [], row } = SERVICES.Kutt ?? {};
const rows = LINKS.map((link) => row?.(link) ?? {});
const columns = Object.keys(rows[0] ?? {});
const TYPES: Record<string, string> = { id: "int", visit_count: "int", banned: "boolean" };

/** Creates Kutt's table with the links. */
function statements({ timestamp, backslash }: { timestamp: string; backslash: string }): string {
  const quote = (text: string) => `'${text.replaceAll("\\", backslash)}'`;
  const toSql = (cell: Row[string]) => {
    if (cell instanceof Date) return quote(cell.toISOString().slice(0, 19).replace("T", " "));
    return typeof cell === "string" ? quote(cell) : String(cell);
  };
  const typeOf = (name: string) => (name === "created_at" ? timestamp : (TYPES[name] ?? "text"));
  const values = rows.map((one) => `(${Object.values(one).map(toSql).join(", ")})`);
  return `create table links (${columns.map((name) => `${name} ${typeOf(name)}`).join(", ")});
insert into links values ${values.join(", ")};`;
}

const { hostname, port, username, password, pathname } = new URL(url);
const env = { ...process.env, PGTZ: "UTC", MYSQL_PWD: password };
const run = (program: string, ...words: string[]) => execFileSync(program, words, { encoding: "utf8", env });

function sqlite(...words: string[]): string {
  return run("/usr/bin/sqlite3", ...words);
}

function psql(command: string): string {
  return run("/usr/bin/psql", url, "-qc", command);
}

function mariadb(statement: string): string {
  return run(
    "/usr/bin/mariadb",
    "-h",
    hostname,
    "-P",
    port,
    "-u",
    username,
    pathname.slice(1),
    "-e",
    statement,
  );
}

/** MariaDB writes no names of columns, so they are the first row. */
function intoOutfile(options: string): string {
  rmSync(outfile, { force: true });
  const names = columns.map((name) => `'${name}'`).join(", ");
  mariadb(`select ${names} union all select * from links into outfile '${outfile}' ${options}`);
  return readFileSync(outfile, "utf8");
}

type Program = { path: string; create(): void; exports: Record<string, () => string> };

const PROGRAMS: Record<string, Program> = {
  sqlite: {
    path: "/usr/bin/sqlite3",
    create: () => sqlite(pathname, statements({ timestamp: "text", backslash: "\\" })),
    exports: { "sqlite3 -csv": () => sqlite("-header", "-csv", pathname, "select * from links") },
  },
  postgres: {
    path: "/usr/bin/psql",
    create: () => psql(statements({ timestamp: "timestamptz", backslash: "\\" })),
    exports: { "\\copy": () => psql("\\copy links to stdout csv header") },
  },
  mysql: {
    path: "/usr/bin/mariadb",
    create: () => mariadb(statements({ timestamp: "datetime", backslash: "\\\\" })),
    exports: {
      "into outfile": () => intoOutfile(""),
      "into outfile, enclosed in quotes": () => intoOutfile(`fields terminated by ',' enclosed by '"'`),
    },
  },
};

const program = PROGRAMS[engine] as Program;
const title = `the table of Kutt in ${engine} is imported as it was`;
if (existsSync(program.path)) {
  program.create();
  for (const [name, write] of Object.entries(program.exports))
    test.serial(`${title}: ${name}`, async (t) => {
      const file = await readExport(write());
      t.is(file.format, format);
      keepsLinks(t, file.links, keeps);
    });
} else skip(title, `${program.path} is not installed`);
