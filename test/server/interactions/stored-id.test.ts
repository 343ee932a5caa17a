import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { authorizeUrl, createApp, openConsent } from "../../harness/clients/oauth.ts";
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

test.serial("the row of a pending authorization contains no id that opens or resumes it", async (t) => {
  const { app } = await createApp(service);
  const page = await new TestBrowser(service.url).open(authorizeUrl(service, app));
  const [, id = ""] = /\/interaction\/([A-Za-z0-9_-]+)/.exec(page.url) ?? [];
  t.true(id.length >= 20);
  const rows = await knex("interactions").select();
  t.is(rows.length, 1);
  t.false(JSON.stringify(rows).includes(id));
});

test.serial("the row of a signed-in user's authorization contains no id of the session either", async (t) => {
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  await browser.signIn(await browser.open(`${service.url}/auth/login`), user);
  const page = await openConsent(browser, user, authorizeUrl(service, app));
  t.regex(page.url, /\/interaction\//);
  const cookies = await browser.jar.getCookies(service.url);
  const session = cookies.find(({ key }) => key === "session")?.value ?? "";
  t.true(session.length >= 20);
  const rows = await knex("interactions").select();
  t.true(rows.length > 0);
  t.false(JSON.stringify(rows).includes(session));
});
