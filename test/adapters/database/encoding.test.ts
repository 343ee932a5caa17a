import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { endingOf, runCommand, startServer, stopPrograms } from "../../harness/program.ts";

export const databases = "all";

test.after.always(stopPrograms);

type Unsuitable = { url: string; message: string; drop(): Promise<void> };

/** A database of PostgreSQL with another encoding. */
async function createEncoded(encoding: string): Promise<Unsuitable> {
  const { url, drop } = await createTestDatabase({ empty: true });
  const name = new URL(url).pathname.slice(1);
  const admin = openDatabase(process.env.TEST_POSTGRES_URL as string);
  await admin.knex.raw(`drop database ${name}`);
  await admin.knex.raw(
    `create database ${name} encoding '${encoding}' lc_collate 'C' lc_ctype 'C' template template0`,
  );
  await admin.close();
  const message = `The database has the encoding ${encoding}, which can't store every text. Use a database that was created with: create database linkgate encoding 'UTF8' template template0`;
  return { url, message, drop };
}

/** A database of MariaDB with a table that was converted. */
async function createConverted(encoding: string): Promise<Unsuitable> {
  const { url, drop } = await createTestDatabase();
  const database = openDatabase(url);
  await database.migrate();
  await database.knex.raw("set foreign_key_checks = 0");
  await database.knex.raw(`alter table links modify title varchar(255) character set ${encoding}`);
  await database.close();
  const message = `The column links.title has the character set ${encoding}, which can't store every text. Convert the table to utf8mb4, or use an empty database.`;
  return { url, message, drop };
}

const UNSUITABLE: Record<string, [encodings: string[], create: (encoding: string) => Promise<Unsuitable>]> = {
  postgres: [["LATIN1", "SQL_ASCII"], createEncoded],
  mysql: [["latin1", "utf8mb3"], createConverted],
};

const [encodings, create] = UNSUITABLE[engine] ?? [];
for (const encoding of encodings ?? [])
  test(`a database with the encoding ${encoding} is refused at start, and doctor says so`, async (t) => {
    const { url, message, drop } = await (create as typeof createEncoded)(encoding);
    t.teardown(drop);
    const settings = { DATABASE_URL: url, ENCRYPTION_KEY: randomBytes(32).toString("base64url"), PORT: "0" };
    t.like(await endingOf(startServer({ settings })), { code: 1, stdout: "", stderr: `${message}\n` });
    const { code, stdout } = await runCommand(["doctor", "--json"], { settings });
    t.is(code, 1);
    const { checks } = JSON.parse(stdout) as { checks: { name: string; ok: boolean; detail: string }[] };
    t.like(
      checks.find(({ name }) => name === "database"),
      { ok: false, detail: message },
    );
  });

test("a database whose encoding is UTF-8 is accepted, before and after migrations", async (t) => {
  const { url, drop } = await createTestDatabase({ empty: true });
  const database = openDatabase(url);
  t.teardown(async () => {
    await database.close();
    await drop();
  });
  await t.notThrowsAsync(database.assertEncoding());
  await database.migrate();
  await t.notThrowsAsync(database.assertEncoding());
});
