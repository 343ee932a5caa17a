import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { type Api, apiAt, isProblem, type LinkBody, read } from "../harness/clients/api.ts";
import { mountSmallDisk, type SmallDisk } from "../harness/database/small-disk.ts";
import { atOnce } from "../harness/database/storage.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { populate, postForm } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { until } from "../harness/webhooks.ts";

export const stage = "processes";

const TITLE = "SQLite: the service recovers by itself from a full disk and stops cleanly";
const MEGABYTES = 128;
// Enough for several checkpoints.
const MANY_WRITES = 4000;

const disk = mountSmallDisk(`${MEGABYTES}m`);
test.after.always(() => {
  stopPrograms();
  disk?.unmount();
});
if (disk) testFullDisk(disk);
else skip(TITLE, "an in-memory file system can't be mounted (needs Linux and root)");

function settingsFor({ folder }: SmallDisk) {
  return {
    DATABASE_URL: `sqlite:${path.join(folder, "linkgate.sqlite")}`,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    PORT: "0",
    RATE_LIMIT: "off",
    LOG_LEVEL: "error",
  };
}

/** Starts a server with a user and an app. */
async function start(settings: ReturnType<typeof settingsFor>) {
  const server = startServer({ settings });
  const url = await addressOf(server);
  const storage = openStorage(settings.DATABASE_URL, Buffer.from(settings.ENCRYPTION_KEY, "base64url"));
  const seed = populate(url, storage);
  const app = await seed.createOrganization();
  const { username, password } = await seed.createUser([app.id]);
  await storage.close();
  const credentials = {
    grant_type: "client_credentials",
    client_id: app.clientId,
    client_secret: app.clientSecret,
  };
  return {
    server,
    url,
    api: apiAt(url, await seed.token(app)),
    requestToken: async () => read(await postForm(`${url}/oauth/token`, credentials)),
    signIn: () => apiAt(url).send("POST", "/auth/login", { json: { username, password } }),
  };
}

/** Issues a number of tokens; resolves to the statuses of the responses. */
async function issue(count: number, requestToken: () => Promise<{ status: number }>) {
  const statuses = new Set<number>();
  let left = count;
  await atOnce(40, async () => {
    while (left-- > 0) statuses.add((await requestToken()).status);
  });
  return [...statuses].sort();
}

function createLink(api: Api) {
  return api.send<LinkBody>("POST", "/v1/links", { json: { url: "https://example.com/" } });
}

function testFullDisk(disk: SmallDisk) {
  const { folder, fill, empty } = disk;
  const settings = settingsFor(disk);

  /** Returns a number that grows whenever the log restarts, which it does after a complete checkpoint. */
  const logRestarts = () => readFileSync(path.join(folder, "linkgate.sqlite-wal")).readUInt32BE(12);

  test.serial.beforeEach(empty);

  test.serial(TITLE, async (t) => {
    const { server, url, api, requestToken, signIn } = await start(settings);
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
    for (const reply of [await rejected(() => createLink(api)), await rejected(signIn)]) {
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
    const { code, signal, stderr } = await server.stop();
    t.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: "" });
  });

  test.serial("SQLite: a full disk doesn't delay the exit", async (t) => {
    const { server, requestToken, signIn } = await start(settings);
    fill();
    await until(async () => ((await requestToken()).status === 503 ? true : undefined));
    t.is((await signIn()).status, 503);
    const { code, signal, stderr } = await server.stop();
    t.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: "" });
    empty();
    const again = await start(settings);
    t.is((await again.signIn()).status, 200);
    t.is((await again.server.stop()).code, 0);
  });
}
