import { randomBytes } from "node:crypto";
import { copyFileSync, existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import knexFactory, { type Knex } from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { closeAfterTests } from "../closing.ts";

export type TestDatabase = { url: string; drop(): Promise<void> };

/** The database engine of this run: `TEST_DATABASE`, by default SQLite. */
export const engine = process.env.TEST_DATABASE ?? "sqlite";

// A migrated database, if the run has one. Copies of it save each test file the migrations, which take MariaDB seconds.
const { TEST_TEMPLATE } = process.env;

// Copying a template may take long while other tests do the same.
const SETUP_MS = 120_000;

/**
 * Creates a database: a file, or a database on the server of `TEST_POSTGRES_URL` or `TEST_MYSQL_URL`. It is migrated if
 * the run has a template, unless it has to be empty or `on` names another engine than that of the run. It is dropped
 * after the tests of the file.
 */
export async function createTestDatabase({ empty = false, on = engine } = {}): Promise<TestDatabase> {
  const template = empty || on !== engine ? undefined : TEST_TEMPLATE;
  if (on === "sqlite") return createFile(template);
  const server = serverOf(on);
  if (!server) throw new Error(`${on} needs the URL of a server`);
  const name = `linkgate_test_${randomBytes(6).toString("hex")}`;
  const copied = on === "postgres" && template ? ` template ${databaseOf(template)}` : "";
  await administer(server, `create database ${name}${copied}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  if (on === "mysql" && template) await copyTables(template, url.href);
  const force = on === "postgres" ? " with (force)" : "";
  const drop = closeAfterTests(() => administer(server, `drop database ${name}${force}`));
  return { url: url.href, drop };
}

/** Opens a database to look at it, beside what is tested. It is closed after the tests of the file. */
export function inspect(...options: Parameters<typeof openDatabase>) {
  const database = openDatabase(...options);
  return { ...database, close: closeAfterTests(database.close) };
}

/** Returns the URL of the server of an engine; undefined for SQLite, and if it isn't set. */
export function serverOf(name: string): string | undefined {
  const { TEST_POSTGRES_URL, TEST_MYSQL_URL } = process.env;
  return { postgres: TEST_POSTGRES_URL, mysql: TEST_MYSQL_URL }[name];
}

const MEMORY = "/dev/shm";
const ENOUGH_BYTES = 2 ** 30;

/** Beside the template, which is removed with its folder. */
function folderOfFiles(): string {
  return TEST_TEMPLATE?.startsWith("sqlite:") ? path.dirname(fileOf(TEST_TEMPLATE)) : folderOfTemplates();
}

/** In memory, where there is such a file system: most of the time of tests would pass with waiting for the disk. */
function folderOfTemplates(): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > ENOUGH_BYTES ? MEMORY : tmpdir();
}

function createFile(template: string | undefined): TestDatabase {
  const folder = mkdtempSync(path.join(folderOfFiles(), "linkgate-"));
  const file = path.join(folder, "test.sqlite");
  if (template) copyFileSync(fileOf(template), file);
  const drop = closeAfterTests(async () => rmSync(folder, { recursive: true, force: true }));
  return { url: `sqlite:${file}`, drop };
}

const fileOf = (url: string) => url.replace(/^sqlite:/, "");

type Rows = Record<string, string>[][];

/** MariaDB has no templates: creates the same tables, and copies the rows that migrations insert. */
async function copyTables(template: string, url: string): Promise<void> {
  const source = databaseOf(template);
  await withKnex(url, async (knex) => {
    const [tables] = (await knex.raw("show tables from ??", [source])) as Rows;
    await knex.raw("set foreign_key_checks = 0");
    for (const table of (tables ?? []).flatMap((row) => Object.values(row))) {
      const [rows] = (await knex.raw("show create table ??.??", [source, table])) as Rows;
      await knex.raw(rows?.[0]?.["Create Table"] ?? "");
      await knex.raw("insert into ?? select * from ??.??", [table, source, table]);
    }
  });
}

const databaseOf = (url: string): string => new URL(url).pathname.slice(1);

async function administer(url: string, statement: string): Promise<void> {
  await withKnex(url, async (knex) => void (await knex.raw(statement)));
}

async function withKnex(url: string, use: (knex: Knex) => Promise<void>): Promise<void> {
  const knex = knexFactory({ ...knexConfig(url, { timeoutMs: SETUP_MS }), pool: { min: 1, max: 1 } });
  try {
    await use(knex);
  } finally {
    await knex.destroy();
  }
}
