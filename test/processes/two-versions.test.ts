import test from "ava";
import { startBalancer } from "../harness/balancer.ts";
import { apiAt } from "../harness/clients/api.ts";
import { codeFor } from "../harness/clients/authorization.ts";
import { createApp } from "../harness/clients/authorization-request.ts";
import { postAsClient, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { ADDITIVE } from "../harness/database/additive-migration.ts";
import { inspect } from "../harness/database/test-database.ts";
import { prepareServers } from "../harness/new-server.ts";
import { freePort } from "../harness/program.ts";
import type { TestService } from "../harness/service.ts";
import { NEWER, serviceAt } from "../harness/two-versions.ts";
import { startReceiver, until } from "../harness/webhooks.ts";

export const databases = "all";

// The server of this version and one of the next version on one database, behind one URL.
const ports = { old: await freePort(), current: await freePort() };
const backends = { authorization: [ports.old], resources: [ports.old] };
const balancer = await startBalancer(backends);
const receiver = await startReceiver();
const changes = { BASE_URL: balancer.url, LOG_LEVEL: "error" };
const { settings, storage, start } = await prepareServers(changes, { empty: true });
const { knex } = inspect(settings.DATABASE_URL);
const both = serviceAt(balancer.url, storage);
const old = serviceAt(await balancer.pin(ports.old), storage);
const current = serviceAt(await balancer.pin(ports.current), storage);

test.serial("an upgrade under load loses nothing while both versions run", async (t) => {
  const { server: older } = await start({ PORT: String(ports.old) });
  const { app, user } = await createApp(both);
  const hooks = apiAt(old.url, await old.token(app));
  const webhook = { url: receiver.url("/hook"), events: ["link.created"] };
  t.is((await hooks.send("POST", "/v1/webhooks", { json: webhook })).status, 201);
  const links = new Map<string, string>();
  const tokens: string[] = [];
  const refreshTokens: string[] = [];
  const browser = new TestBrowser(both.url);
  let servers = [old];
  let turn = 0;
  const next = () => servers[turn++ % servers.length] as TestService;

  async function useCredentials() {
    const token = await next().token(app);
    tokens.push(token);
    const { id, slug } = await apiAt(next().url, token).createLink();
    links.set(id, slug);
    t.is((await apiAt(next().url).get(`/${slug}`)).status, 302);
    t.true((await postAsClient(next(), "introspect", app, { token })).body.active);
  }

  /** The pages come from all servers in turn. */
  async function useCode() {
    const code = await codeFor(both, app, user, { browser });
    const { body } = await redeemCode(next(), app, code);
    const refreshed = await refresh(next(), app, String(body.refresh_token));
    const newToken = String(refreshed.body.access_token);
    t.is((await apiAt(next().url, newToken).get("/v1/organization")).status, 200);
    tokens.push(String(body.access_token), newToken);
    refreshTokens.push(String(body.refresh_token));
  }

  let isOver = false;
  let rounds = 0;
  const repeat = async (work: () => Promise<void>) => {
    for (; !isOver; rounds++) await work();
  };
  const load = Promise.all([repeat(useCredentials), repeat(useCredentials), repeat(useCode)]);
  const more = async (count: number) => {
    const goal = rounds + count;
    await Promise.race([load, until(async () => rounds >= goal || undefined)]);
  };
  await more(15);
  const { server: newer } = await start({ ...NEWER, PORT: String(ports.current) });
  t.true((await knex("knex_migrations").pluck("name")).includes(ADDITIVE.name));
  Object.assign(backends, { authorization: Object.values(ports), resources: Object.values(ports) });
  servers = [old, current];
  await more(60);
  servers = [current];
  Object.assign(backends, { authorization: [ports.current], resources: [ports.current] });
  t.is((await older.stop()).code, 0);
  await more(15);
  isOver = true;
  await load;
  t.log(`${links.size} links, ${tokens.length} access tokens, ${refreshTokens.length} grants`);

  for (const token of tokens) t.truthy(await storage.findActiveToken(token));
  for (const token of refreshTokens) t.is((await refresh(current, app, token)).status, 200);
  await until(async () => {
    const sent = new Set(receiver.received("/hook").map(({ body }) => body.data.id));
    return [...links.keys()].every((id) => sent.has(id)) || undefined;
  });
  const { code, stdout } = await newer.stop();
  t.is(code, 0);
  t.notRegex(stdout + older.stdout, /"level"/, "no error is logged");
  const stored = await knex("links").where({ organization_id: app.id }).select("id", "slug", "clicks");
  const expected = [...links].map(([id, slug]) => [id, slug, 1]);
  t.deepEqual(stored.map(({ id, slug, clicks }) => [id, slug, clicks]).sort(), expected.sort());
  const counted = { organization_id: app.id, link_id: "", dimension: "link" };
  const stats = await knex("click_counts").where(counted).select("name", "clicks");
  t.deepEqual(stats.map(({ name, clicks }) => [name, clicks]).sort(), stored.map(({ id }) => [id, 1]).sort());
  t.true((await storage.verifyAuditLogs()).every(({ ok }) => ok));
});
