import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, watch } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { apiAt, BROWSER } from "../../harness/clients/api.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import { freePort } from "../../harness/port.ts";
import { addressOf, type Program, runShell, startCommand, stopPrograms } from "../../harness/program.ts";
import { postForm } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";
import { waitUntilVerified } from "../../harness/webhooks.ts";

export const stage = "processes";

const folders = mkdtempSync(path.join(tmpdir(), "linkgate-dev-test-"));
test.after.always(stopPrograms);
test.after.always(() => rmSync(folders, { recursive: true, force: true }));

const DAY_MS = 24 * 60 * 60 * 1000;
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
  password: string;
  organizations: { id: string; client_id: string; client_secret: string; clicks: number }[];
};

/** Starts the server with a folder of its own for temporary files. */
function start(name: string, words: string[], node = process.execPath): { server: Program; folder: string } {
  const folder = path.join(folders, name);
  mkdirSync(folder);
  return {
    server: startCommand(["dev", ...words], { cwd: folder, settings: { TMPDIR: folder }, node }),
    folder,
  };
}

/** Resolves to the name of a file when it exists in the folder. */
function created(folder: string, name: RegExp): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const look = () => {
    const found = readdirSync(folder).find((file) => name.test(file));
    if (found) resolve(found);
  };
  const watcher = watch(folder, look);
  look();
  return promise.finally(() => watcher.close());
}

test.serial(
  "the printed user signs in, the printed command gets a token, and there is a year of clicks",
  async (t) => {
    const { server, folder } = start("text", ["--port", "0"]);
    const base = await addressOf(server);
    const password = /password (\S+)$/m.exec(server.stdout)?.[1] ?? "";
    const [, id = "", username = ""] = /^ {2}((\w+)) +owner of Harbor Coffee/m.exec(server.stdout) ?? [];
    const own = apiAt(base, await firstPartyToken({ url: base }, { id, username, password }));
    const { body: me } = await own.get<{ organizations: { name: string; plan: string; role: string }[] }>(
      "/dashboard/me",
    );
    t.deepEqual(
      me.organizations.map(({ name, plan, role }) => `${name} ${plan} ${role}`),
      ["Harbor Coffee growth owner", "Northwind Books premium admin"],
    );

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
    const { body: links } = await api.get<{ data: { clicks: number }[] }>("/v1/links?limit=100");
    t.is(
      links.data.reduce((sum, { clicks }) => sum + clicks, 0),
      body.clicks,
      "the links count the same clicks",
    );

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
    const { code, stdout, stderr } = await server.stop();
    t.is(code, 0);
    t.is(stderr, "");
    t.is(stdout.match(/linkgate listening on/g)?.length, 1);
    t.deepEqual(readdirSync(folder), [], "the temporary folder is removed");
  },
);

test.serial(
  "--json prints the description as one line, and a line for each event; unsigned and incomplete ones are refused",
  async (t) => {
    const { server, folder } = start("json", ["--port", "0", "--json"]);
    const [line] = await server.says(/^\{.*\}$/m);
    const { base, organizations }: Description = JSON.parse(line);
    t.is(organizations.length, 2);
    for (const { client_id, client_secret, clicks } of organizations) {
      t.true(clicks > 100_000);
      const response = await postForm(`${base}/oauth/token`, {
        grant_type: "client_credentials",
        client_id,
        client_secret,
      });
      const api = apiAt(base, ((await response.json()) as { access_token: string }).access_token);
      const { body } = await api.get<{ data: { id: string; url: string }[] }>("/v1/webhooks");
      for (const { id, url } of body.data) {
        await waitUntilVerified(api, `/v1/webhooks/${id}`);
        const forged = JSON.stringify({
          type: "link.deleted",
          timestamp: "2026-01-01T00:00:00.000Z",
          data: {},
        });
        const headers = { "webhook-id": "evt_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA" };
        t.is((await fetch(url, { method: "POST", body: forged, headers })).status, 401);
        await disconnectFrom(url);
      }
      await api.createLink({ title: client_id });
    }
    const [event] = await server.says(/^\{"event".*$/m);
    t.like(JSON.parse(event), {
      event: { type: "link.created", data: { title: organizations[0]?.client_id } },
    });

    const { port } = new URL(base);
    const missing = path.join(folder, "missing");
    const second = startCommand(["dev", "--port", port, "--json"], { settings: { TMPDIR: missing } });
    const ending = await second.ended;
    t.is(ending.code, 1);
    t.is(ending.stdout, "");
    t.is(JSON.parse(ending.stderr).error.code, "port_in_use", "the port is checked before data is created");

    const { code, stdout } = await server.stop();
    t.is(code, 0);
    t.notRegex(stdout, /link\.deleted|verification/);
    t.deepEqual(readdirSync(folder), []);
  },
);

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  test.serial(`${signal} during the start ends it without a banner, and nothing remains`, async (t) => {
    const { server, folder } = start(signal, ["--port", "0"]);
    // The key is created before the data.
    await created(path.join(folder, await created(folder, /^linkgate-dev-/)), /\.key$/);
    server.kill(signal);
    t.deepEqual(await server.ended, { code: 0, signal: null, stdout: "", stderr: "" });
    t.deepEqual(readdirSync(folder), []);
  });

test("a port that isn't one is refused, and nothing remains", async (t) => {
  const { server, folder } = start("wrong", ["--port", "http"]);
  const { code, stdout, stderr } = await server.ended;
  t.is(code, 1);
  t.is(stdout, "");
  t.is(stderr, "The port must be a number from 0 to 65535.\n");
  t.deepEqual(readdirSync(folder), []);
});

test.serial("without --port, the server listens on PORT", async (t) => {
  const port = String(await freePort());
  const server = startCommand(["dev"], { cwd: folders, settings: { PORT: port } });
  t.is(new URL(await addressOf(server)).port, port);
  t.is((await server.stop()).code, 0);
});

const onNode22 = "on Node 22, the server starts and stops";
if (!process.env.TEST_NODE_22) skip(onNode22, "TEST_NODE_22 is not set");
else
  test.serial(onNode22, async (t) => {
    const { server, folder } = start("node-22", ["--port", "0"], process.env.TEST_NODE_22);
    await addressOf(server);
    t.is((await server.stop()).code, 0, server.stderr);
    t.deepEqual(readdirSync(folder), []);
  });
