import { randomBytes } from "node:crypto";
import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";
import { startTcpProxy } from "../../harness/tcp-proxy.ts";

const TITLE = "while the database is frozen, /readyz and /metrics answer before statements fail";
// Reason: ava fails if a file has no test.
if (engine === "sqlite") test.skip("SQLite has no connection that could freeze", (t) => t.pass());
else
  test(TITLE, async (t) => {
    const database = await createTestDatabase();
    const proxy = await startTcpProxy(database.url);
    const service = await startTestService({
      DATABASE_URL: proxy.through(database.url),
      DATABASE_TIMEOUT: "60",
      ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    });
    t.teardown(async () => {
      await service.close();
      await proxy.close();
      await database.drop();
    });
    const api = apiAt(service.url, await service.token(await service.createOrganization()));
    t.is((await sendRaw(service.url, "/readyz")).status, 200);

    await proxy.cut("freeze");
    let isPending = true;
    const request = api.get("/v1/links").finally(() => {
      isPending = false;
    });
    for (let times = 0; times < 2; times++) {
      const { status, text } = await sendRaw(service.url, "/readyz?verbose");
      t.is(status, 503);
      t.like(JSON.parse(text), { status: "no database", pid: process.pid });
    }
    const { status, text } = await sendRaw(service.url, "/metrics");
    t.is(status, 200);
    t.regex(text, /^linkgate_database_up 0$/m);
    t.notRegex(text, /^linkgate_purge_lag_seconds \d/m);
    t.true(isPending);

    await proxy.restore();
    await proxy.cut("refuse");
    t.is((await request).status, 503);
    await proxy.restore();
    t.is((await sendRaw(service.url, "/readyz")).status, 200);
    t.regex((await sendRaw(service.url, "/metrics")).text, /^linkgate_database_up 1$/m);
  });
