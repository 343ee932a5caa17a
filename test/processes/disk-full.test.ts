import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { apiAt, isProblem } from "../harness/clients/api.ts";
import { postAsClient } from "../harness/clients/oauth.ts";
import { mountSmallDisk, type SmallDisk } from "../harness/database/small-disk.ts";
import { atOnce } from "../harness/database/storage.ts";
import { addressOf, startServer } from "../harness/program.ts";
import { skip } from "../harness/skip.ts";
import { serviceAt } from "../harness/two-versions.ts";
import { until } from "../harness/webhooks.ts";

const TITLE = "SQLite: the service recovers by itself from a full disk and stops cleanly";
// Enough for several checkpoints.
const MANY_WRITES = 4000;
const KEY = randomBytes(32);

const disk = mountSmallDisk("128m");
if (disk) testFullDisk(disk);
else skip(TITLE, "an in-memory file system can't be mounted (needs Linux and root)");

async function start({ folder }: SmallDisk) {
  const DATABASE_URL = `sqlite:${folder}/linkgate.sqlite`;
  const settings = { DATABASE_URL, ENCRYPTION_KEY: KEY.toString("base64url"), PORT: "0", RATE_LIMIT: "off" };
  const server = startServer({ settings: { ...settings, LOG_LEVEL: "error" } });
  const url = await addressOf(server);
  const storage = openStorage(DATABASE_URL, KEY);
  const seed = serviceAt(url, storage);
  const app = await seed.createOrganization();
  const { username, password } = await seed.createUser([app.id]);
  await storage.close();
  return {
    server,
    url,
    api: apiAt(url, await seed.token(app)),
    requestToken: () => postAsClient(seed, "token", app, { grant_type: "client_credentials" }),
    signIn: () => apiAt(url).send("POST", "/auth/login", { json: { username, password } }),
  };
}

async function issue(count: number, requestToken: () => Promise<{ status: number }>) {
  const statuses = new Set<number>();
  let left = count;
  await atOnce(40, async () => {
    while (left-- > 0) statuses.add((await requestToken()).status);
  });
  return [...statuses].sort();
}

function testFullDisk(disk: SmallDisk) {
  const { folder, fill, empty } = disk;

  /** Returns a number that grows whenever the log restarts, which it does after a complete checkpoint. */
  const logRestarts = () => readFileSync(`${folder}/linkgate.sqlite-wal`).readUInt32BE(12);

  test.serial.beforeEach(empty);

  test.serial(TITLE, async (t) => {
    const { server, url, api, requestToken, signIn } = await start(disk);
    const links = await atOnce(20, () => api.createLink());
    t.deepEqual(await issue(MANY_WRITES, requestToken), [200]);

    const rejected = async <T extends { status: number }>(send: () => Promise<T>): Promise<T> => {
      for (;;) {
        const reply = await send();
        if (reply.status === 503) return reply;
        await issue(100, requestToken);
      }
    };
    // The log may have room at first, which the last checkpoint has left.
    fill();
    await rejected(requestToken);
    while (!server.stdout.includes("checkpoint failed")) {
      fill(256 * 1024);
      await issue(100, requestToken);
    }
    fill();
    // A retry of the checkpoint may succeed with the remaining space at any time: the log then has room until the next
    // one, which fails.
    const json = { url: "https://example.com/" };
    for (const send of [() => api.send("POST", "/v1/links", { json }), signIn]) {
      const reply = await rejected(send);
      isProblem(t, reply, { status: 503, code: "temporarily_unavailable" });
      t.regex(reply.headers.get("retry-after") ?? "", /^\d+$/);
    }
    const token = await rejected(requestToken);
    t.like(token.body, { error: "temporarily_unavailable" });
    t.regex(token.headers.get("retry-after") ?? "", /^\d+$/);
    t.is((await api.get("/v1/links")).status, 200);
    t.is((await api.get(`/v1/links/${links[0]?.id}`)).status, 200);
    t.is((await fetch(`${url}/${links[0]?.slug}`, { redirect: "manual" })).status, 302);

    const before = logRestarts();
    empty();
    t.is((await signIn()).status, 200);
    t.is((await requestToken()).status, 200);
    links.push(await api.createLink());
    t.deepEqual(await issue(2 * MANY_WRITES, requestToken), [200]);
    await until(async () => {
      links.push(await api.createLink());
      return logRestarts() > before || undefined;
    });
    t.is((await signIn()).status, 200);
    for (const { id } of links) t.is((await api.get(`/v1/links/${id}`)).status, 200);
    t.like(await server.stop(), { code: 0, signal: null, stderr: "" });
  });

  test.serial("SQLite: a full disk doesn't delay the exit", async (t) => {
    const { server, requestToken, signIn } = await start(disk);
    fill();
    await until(async () => ((await requestToken()).status === 503 ? true : undefined));
    t.is((await signIn()).status, 503);
    t.like(await server.stop(), { code: 0, signal: null, stderr: "" });
    empty();
    const again = await start(disk);
    t.is((await again.signIn()).status, 200);
    t.is((await again.server.stop()).code, 0);
  });
}
