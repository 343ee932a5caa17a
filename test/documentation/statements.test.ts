import { globSync } from "node:fs";
import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { blocksOf } from "../harness/examples.ts";
import { ROOT } from "../harness/program.ts";

export const databases = "all";

const database = await createTestDatabase();
const knex = knexFactory(knexConfig(database.url));

test.after.always(async () => {
  await knex.destroy();
});

for (const document of globSync("docs/**/*.md", { cwd: ROOT }).toSorted()) {
  const statements = blocksOf(document)
    .filter(({ language }) => language === "sql")
    .flatMap(({ code }) => code.trim().split(/;\s*/))
    .filter(Boolean);
  if (statements.length > 0)
    test(`the database executes the statements of ${document}`, async (t) => {
      for (const statement of statements) await t.notThrowsAsync(async () => knex.raw(statement), statement);
    });
}
