import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { createApp, refresh } from "../harness/clients/oauth.ts";
import { ADDITIVE } from "../harness/database/additive-migration.ts";
import { stopPrograms } from "../harness/program.ts";
import { startReceiver } from "../harness/receiver.ts";
import { startOlderVersion } from "../harness/two-versions.ts";
import { startUpgradeLoad } from "../harness/upgrade-load.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const versions = await startOlderVersion();
const { both, old, current } = versions;
const receiver = await startReceiver();
const database = openDatabase(versions.databaseUrl);
test.after.always(stopPrograms);
test.after.always(async () => {
  await database.close();
  await versions.close();
  await receiver.close();
});

test.serial("an upgrade under load loses nothing while both versions run", async (t) => {
  const { app, user } = await createApp(both);
  const api = apiAt(old.url, await old.token(app));
  const webhook = { url: receiver.url("/hook"), events: ["link.created"] };
  t.is((await api.send("POST", "/v1/webhooks", { json: webhook })).status, 201);
  let servers = [old];
  const load = startUpgradeLoad(versions, { app, user }, () => servers);
  t.teardown(load.stop);
  await load.rounds(15);
  await versions.startCurrent();
  t.true((await database.knex("knex_migrations").pluck("name")).includes(ADDITIVE.name));
  servers = [old, current];
  await load.rounds(30);
  await load.rounds(30);
  servers = [current];
  await versions.stopOld();
  await load.rounds(15);
  await load.stop();
  t.deepEqual(load.failures, []);
  t.log(`${load.links.size} links, ${load.tokens.length} access tokens, ${load.refreshTokens.length} grants`);

  for (const token of load.tokens) t.truthy(await current.storage.findActiveToken(token));
  for (const token of load.refreshTokens) t.is((await refresh(current, app, token)).status, 200);
  await until(async () => {
    const sent = new Set(receiver.received("/hook").map(({ body }) => body.data.id));
    return [...load.links.keys()].every((id) => sent.has(id)) || undefined;
  });
  t.notRegex(await versions.stopCurrent(), /"level"/, "no error is logged");
  const links = await database
    .knex("links")
    .where({ organization_id: app.id })
    .select("id", "slug", "clicks");
  t.deepEqual(
    links.map(({ id, slug, clicks }) => [id, slug, clicks]).sort(),
    [...load.links].map(([id, slug]) => [id, slug, 1]).sort(),
  );
  const stats = await database
    .knex("click_counts")
    .where({ organization_id: app.id, link_id: "", dimension: "link" });
  t.deepEqual(stats.map(({ name, clicks }) => [name, clicks]).sort(), links.map(({ id }) => [id, 1]).sort());
  const reports = await current.storage.verifyAuditLogs();
  t.true(reports.every(({ ok }) => ok));
});
