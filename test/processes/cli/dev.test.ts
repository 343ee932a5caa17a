import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import test from "ava";
import { apiAt, BROWSER, type PageBody } from "../../harness/clients/api.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import { DAY_MS } from "../../harness/clock.ts";
import { addressOf, refusalOf, runShell, startCommand, temporaryFolder } from "../../harness/program.ts";
import { populate, postForm } from "../../harness/service.ts";
import { until, type WebhookPage, waitUntilVerified } from "../../harness/webhooks.ts";

const DAYS = 365;

/** Sends a part of a request. */
async function disconnectFrom(url: string): Promise<void> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
  await once(socket, "data");
  socket.destroy();
}

type Description = {
  base: string;
  organizations: { client_id: string; client_secret: string; clicks: number }[];
};

function start(words: string[]) {
  const folder = temporaryFolder("dev-test");
  return { server: startCommand(["dev", ...words], { cwd: folder, settings: { TMPDIR: folder } }), folder };
}

/** Resolves to the name of a file when it exists in the folder. */
const created = (folder: string, name: RegExp) =>
  until(async () => readdirSync(folder).find((file) => name.test(file)));

test.serial("the printed user and command work, and there is a year of clicks", async (t) => {
  const { server, folder } = start(["--port", "0"]);
  const base = await addressOf(server);
  const password = /password (\S+)$/m.exec(server.stdout)?.[1] ?? "";
  const [, id = "", username = ""] = /^ {2}((\w+)) +owner of Harbor Coffee/m.exec(server.stdout) ?? [];
  const own = apiAt(base, await firstPartyToken({ url: base }, { id, username, password }));
  type Me = { organizations: { name: string; plan: string; role: string }[] };
  const { body: me } = await own.get<Me>("/dashboard/me");
  t.is(me.organizations.length, 2);
  t.like(me.organizations, [
    { name: "Harbor Coffee", plan: "growth", role: "owner" },
    { name: "Northwind Books", plan: "premium", role: "admin" },
  ]);

  const [command = ""] = /^ {2}curl .*$/m.exec(server.stdout) ?? [];
  const api = apiAt(base, JSON.parse((await runShell(command)).stdout).access_token);
  const from = new Date(Date.now() - (DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
  type Analytics = { clicks: number; bot_clicks: number; days: { clicks: number }[]; countries: object[] };
  const { body } = await api.get<Analytics>(`/v1/analytics?from=${from}`);
  const printed = /Harbor Coffee \(Growth plan\): 40 links, ([\d,]+) clicks/.exec(server.stdout)?.[1];
  t.is(body.clicks.toLocaleString("en"), printed ?? "");
  t.true(body.bot_clicks > 0);
  t.true(body.countries.length > 5);
  t.is(body.days.length, DAYS);
  // Today may have just begun.
  t.true(body.days.slice(0, -1).every(({ clicks }) => clicks > 0));
  const { body: links } = await api.get<PageBody>("/v1/links?limit=100");
  const ofLinks = links.data.reduce((sum, { clicks }) => sum + clicks, 0);
  t.is(ofLinks, body.clicks, "the links count the same clicks");

  const link = await api.createLink({ slug: "first", url: "https://example.com/first" });
  await server.says(/event {2}link\.created {2}first → https:\/\/example\.com\/first$/m);
  await fetch(link.short_url, { redirect: "manual", headers: { "user-agent": BROWSER } });
  await server.says(/event {2}link\.clicked {2}first$/m);

  await postForm(`${base}/auth/forgot-password`, { username });
  const [, reset = ""] = await server.says(
    /email {2}to nora@example\.com: Reset your linkgate password\n[\s\S]*?│ (http\S+\/auth\/reset-password\/\S+)/,
  );
  t.is((await fetch(reset)).status, 200);

  t.is(readdirSync(folder).length, 1);
  const { stdout, ...ending } = await server.stop();
  t.deepEqual(ending, { code: 0, signal: null, stderr: "" });
  t.is(stdout.match(/linkgate listening on/g)?.length, 1);
  t.deepEqual(readdirSync(folder), [], "the temporary folder is removed");
});

test.serial("--json prints the description and each event as a line, and refuses forged ones", async (t) => {
  const { server, folder } = start(["--port", "0", "--json"]);
  const [line] = await server.says(/^\{.*\}$/m);
  const { base, organizations }: Description = JSON.parse(line);
  t.is(organizations.length, 2);
  for (const { client_id, client_secret, clicks } of organizations) {
    t.true(clicks > 100_000);
    const client = { clientId: client_id, clientSecret: client_secret };
    const api = apiAt(base, await populate(base, undefined as never).token(client));
    const { body: webhooks } = await api.get<WebhookPage>("/v1/webhooks");
    for (const { id, url } of webhooks.data) {
      await waitUntilVerified(api, `/v1/webhooks/${id}`);
      const body = JSON.stringify({ type: "link.deleted", timestamp: "2026-01-01T00:00:00.000Z", data: {} });
      const headers = { "webhook-id": "evt_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA" };
      t.is((await fetch(url, { method: "POST", body, headers })).status, 401);
      await disconnectFrom(url);
    }
    await api.createLink({ title: client_id });
  }
  const [event] = await server.says(/^\{"event".*$/m);
  const [first] = organizations;
  t.like(JSON.parse(event).event, { type: "link.created", data: { title: first?.client_id } });

  const { port } = new URL(base);
  const refusal = await refusalOf(["dev"], { settings: { TMPDIR: `${folder}/missing`, PORT: port } });
  const message = `Port ${port} is in use: choose another one with --port or PORT.`;
  t.deepEqual(refusal, { code: "port_in_use", message }, "the port is checked before data is created");

  const { code, stdout } = await server.stop();
  t.is(code, 0);
  t.notRegex(stdout, /link\.deleted|verification/);
  t.deepEqual(readdirSync(folder), []);
});

test.serial("a signal during the start ends it without a banner, and nothing remains", async (t) => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    const { server, folder } = start(["--port", "0"]);
    // The key is created before the data.
    await created(`${folder}/${await created(folder, /^linkgate-dev-/)}`, /\.key$/);
    server.kill(signal);
    t.deepEqual(await server.ended, { code: 0, signal: null, stdout: "", stderr: "" });
    t.deepEqual(readdirSync(folder), []);
  }
});

test("a port that isn't one is refused, and nothing remains", async (t) => {
  const { server, folder } = start(["--port", "http"]);
  const stderr = "The port must be a number from 0 to 65535.\n";
  t.deepEqual(await server.ended, { code: 1, signal: null, stdout: "", stderr });
  t.deepEqual(readdirSync(folder), []);
});
