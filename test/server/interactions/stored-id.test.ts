import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { authorizeUrl, createApp } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

const database = await createTestDatabase();
const ENCRYPTION_KEY = Buffer.alloc(32, 5).toString("base64url");
const service = await startTestService({ DATABASE_URL: database.url, ENCRYPTION_KEY });
const knex = knexFactory(knexConfig(database.url));
test.after.always(async () => {
  await knex.destroy();
  await service.close();
  await database.drop();
});

test("the row of a pending authorization contains no id that opens or resumes it", async (t) => {
  const { app } = await createApp(service);
  const page = await new TestBrowser(service.url).open(authorizeUrl(service, app));
  const [, id = ""] = /\/interaction\/([A-Za-z0-9_-]+)/.exec(page.url) ?? [];
  t.true(id.length >= 20);
  const rows = await knex("interactions").select();
  t.is(rows.length, 1);
  t.false(JSON.stringify(rows).includes(id));
});
