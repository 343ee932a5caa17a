import { randomBytes } from "node:crypto";
import { Agent } from "node:http";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { postAsClient } from "../harness/clients/oauth.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { Program, ROOT, runCommand, stopPrograms } from "../harness/program.ts";
import { startReceiver } from "../harness/receiver.ts";
import { startTestService } from "../harness/service.ts";
import { startSteadyLoad } from "../harness/steady-load.ts";
import { createWebhook, deliveriesOf, until } from "../harness/webhooks.ts";

const { url, drop } = await createTestDatabase();
const settings = {
  DATABASE_URL: url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  BASE_URL: "http://localhost:4321",
};
const serverSettings = {
  DATABASE_URL: url,
  ENCRYPTION_KEY: settings.ENCRYPTION_KEY,
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
};
const [service, neighbor] = [await startTestService(serverSettings), await startTestService(serverSettings)];
const receiver = await startReceiver();
const { knex, close } = openDatabase(url);
test.after.always(stopPrograms);
test.after.always(async () => {
  await Promise.all([service.close(), neighbor.close(), receiver.close(), close()]);
  await drop();
});

const words = ["--import", `${ROOT}server/runtime.js`, `${ROOT}server/cli/index.ts`, "partition"];
async function partition(...tables: string[]) {
  const { code, stdout, stderr } = await runCommand(["partition", ...tables, "--json"], { settings });
  return JSON.parse(code === 0 ? stdout : stderr);
}

if (engine !== "postgres") {
  test("SQLite, MariaDB: the command says that it needs PostgreSQL", async (t) => {
    t.deepEqual((await partition()).error, {
      code: "unsupported_database",
      message: "Only tables on PostgreSQL can be partitioned.",
    });
  });
} else {
  test.serial("a conversion that is killed can be repeated, and leaves no limit", async (t) => {
    // Stops the command where it would leave the most: a constraint that no row after its time meets.
    await knex.raw(`create function wait_for_test() returns event_trigger language plpgsql as $$ begin
      if current_query() like '%validate constraint%' then perform pg_advisory_xact_lock(1); end if; end $$`);
    await knex.raw(
      "create event trigger wait_for_test on ddl_command_start when tag in ('ALTER TABLE') execute function wait_for_test()",
    );
    const gate = await knex.transaction();
    await gate.raw("select pg_advisory_xact_lock(1)");
    const command = new Program(process.execPath, words, { settings });
    const limits = async () =>
      (await knex.raw("select conname from pg_constraint where conname like '%_before_partitions'")).rows;
    await until(async () => ((await limits()).length > 0 ? true : undefined));
    command.kill("SIGKILL");
    t.is((await command.ended).signal, "SIGKILL");
    await gate.commit();
    await knex.raw("drop event trigger wait_for_test");
    await until(async () => {
      const { rows } = await knex.raw(
        "select 1 from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
      );
      return rows.length === 0 ? true : undefined;
    });
    t.is((await limits()).length, 1);
    await service.storage.purgeExpired();
    t.is((await limits()).length, 0);
  });

  test.serial("tables are partitioned under load, and no request fails", async (t) => {
    const app = await service.createOrganization();
    const token = await service.token(app);
    const api = apiAt(service.url, token);
    const webhook = await createWebhook(api, receiver.url("/created"));
    const earlier = await api.createLink();
    const keptAlive = new Agent({ keepAlive: true });
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const credentials = `grant_type=client_credentials&client_id=${app.clientId}&client_secret=${app.clientSecret}`;
    const requestsAt = async ({ url, token }: typeof service) => {
      const authorization = `Bearer ${await token(app)}`;
      const json = { "content-type": "application/json", authorization };
      const deliveries = `/v1/webhooks/${webhook.id}/deliveries`;
      const requests = [
        { method: "POST", path: "/oauth/token", headers: form, body: credentials, expected: 200 },
        {
          method: "POST",
          path: "/v1/links",
          headers: json,
          body: '{"url":"https://a.test/"}',
          expected: 201,
        },
        { method: "GET", path: "/v1/links", headers: { authorization }, expected: 200 },
        { method: "GET", path: `/${earlier.slug}`, expected: 302 },
        { method: "GET", path: deliveries, headers: { authorization }, expected: 200 },
      ];
      const next = (index: number) => requests[index % requests.length] as (typeof requests)[0];
      return startSteadyLoad({ url }, { perSecond: 50, next, agents: [keptAlive] });
    };
    const loads = [await requestsAt(service), await requestsAt(neighbor)];
    const everyLoad = (count: number) => Promise.all(loads.map((load) => load.sent(count)));
    // Statements are prepared before, and planned again after.
    await everyLoad(100);
    t.is((await partition("--by", "week")).error.code, "invalid_unit");
    t.deepEqual(await partition("events", "--by", "day"), {
      partitioned: ["events"],
      already_partitioned: [],
    });
    t.deepEqual(await partition(), { partitioned: ["deliveries"], already_partitioned: ["events"] });
    await everyLoad(300);
    t.deepEqual(await partition("tokens"), { partitioned: ["tokens"], already_partitioned: [] });
    await everyLoad(500);
    t.deepEqual(await partition(), { partitioned: [], already_partitioned: ["deliveries", "events"] });
    const ended = await Promise.all(loads.map((load) => load.stop()));
    keptAlive.destroy();
    t.deepEqual(
      ended.flatMap(({ failures }) => failures),
      [],
    );

    const created = ended.reduce((sum, { sent }) => sum + Math.ceil((sent - 1) / 5), 1);
    await receiver.waitFor("/created", created);
    await until(async () => {
      const newest = await deliveriesOf(api, webhook);
      return newest.every(({ status }) => status === "succeeded") ? true : undefined;
    });
    const { body } = await postAsClient(service, "introspect", app, { token });
    t.true(body.active);
    t.true((await service.storage.verifyAuditLogs()).every(({ ok }) => ok));
    const { stdout } = await runCommand(["audit", "operator", "--json"], { settings });
    t.like(JSON.parse(stdout).commands[0], { command: "partition", outcome: "succeeded" });
  });
}
