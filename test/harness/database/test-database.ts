import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";

/** The database of one test file. */
export type TestDatabase = { url: string; drop(): Promise<void> };

/** The database engine of this run: `TEST_DATABASE`, by default SQLite. */
export const engine = process.env.TEST_DATABASE ?? "sqlite";

/** Creates an empty database: a file, or a database on the server of `TEST_POSTGRES_URL` or `TEST_MYSQL_URL`. */
export async function createTestDatabase(): Promise<TestDatabase> {
  if (engine === "sqlite") {
    const folder = mkdtempSync(path.join(tmpdir(), "linkgate-"));
    return {
      url: `sqlite:${folder}/test.sqlite`,
      drop: async () => rmSync(folder, { recursive: true, force: true }),
    };
  }
  const server = engine === "postgres" ? process.env.TEST_POSTGRES_URL : process.env.TEST_MYSQL_URL;
  if (!server) throw new Error(`TEST_DATABASE=${engine} needs the URL of a server`);
  const name = `linkgate_test_${randomBytes(6).toString("hex")}`;
  await administer(server, `create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const force = engine === "postgres" ? " with (force)" : "";
  return { url: url.href, drop: () => administer(server, `drop database ${name}${force}`) };
}

async function administer(url: string, statement: string): Promise<void> {
  const knex = knexFactory(knexConfig(url));
  try {
    await knex.raw(statement);
  } finally {
    await knex.destroy();
  }
}
