import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { type Api, apiAt, isProblem, type LinkBody, read } from "../harness/api.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { populate, postForm } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { mountSmallDisk, type SmallDisk } from "../harness/small-disk.ts";
import { atOnce } from "../harness/storage.ts";
import { until } from "../harness/webhooks.ts";

const TITLE = "SQLite: after its disk was full, the service goes on by itself and stops as always";
const MEGABYTES = 128;
// As many writes as come before a checkpoint.
const WRITES_PER_CHECKPOINT = 4000;

const disk = mountSmallDisk(MEGABYTES);
test.after.always(() => {
  stopPrograms();
  disk?.unmount();
});
if (disk) testFullDisk(disk);
else skip(TITLE, "a file system in memory cannot be mounted (Linux, as root)");

function testFullDisk({ folder, fill, empty }: SmallDisk) {
  const file = path.join(folder, "linkgate.sqlite");
  const settings = {
    DATABASE_URL: `sqlite:${file}`,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    PORT: "0",
    RATE_LIMIT: "off",
    LOG_LEVEL: "error",
  };

  /** A server with somebody to sign in, and an app. */
  async function start() {
    const server = startServer({ settings });
    const url = await addressOf(server);
    const storage = openStorage(settings.DATABASE_URL, Buffer.from(settings.ENCRYPTION_KEY, "base64url"));
    const people = populate(url, storage);
    const app = await people.createOrganization();
    const { username, password } = await people.createUser([app.id]);
    await storage.close();
    const credentials = {
      grant_type: "client_credentials",
      client_id: app.clientId,
      client_secret: app.clientSecret,
    };
    return {
      server,
      url,
      api: apiAt(url, await people.token(app)),
      askToken: async () => read(await postForm(`${url}/oauth/token`, credentials)),
      signIn: () => apiAt(url).send("POST", "/auth/login", { json: { username, password } }),
    };
  }

  /** Issues so many tokens; resolves to the statuses that came. */
  async function issue(count: number, askToken: () => Promise<{ status: number }>) {
    const statuses = new Set<number>();
    let left = count;
    await atOnce(40, async () => {
      while (left-- > 0) statuses.add((await askToken()).status);
    });
    return [...statuses].sort();
  }

  /** Grows by one whenever the log begins anew, which it does after a checkpoint of all of it. */
  const beginnings = () => readFileSync(`${file}-wal`).readUInt32BE(12);

  const createLink = (api: Api) =>
    api.send<LinkBody>("POST", "/v1/links", { json: { url: "https://example.com/" } });

  test.serial.beforeEach(empty);

  test.serial(TITLE, async (t) => {
    const { server, url, api, askToken, signIn } = await start();
    const links = await atOnce(20, () => api.createLink());
    t.deepEqual(await issue(WRITES_PER_CHECKPOINT - 200, askToken), [200]);

    // Writes come to their end before the checkpoint or in it, whichever first meets the full disk.
    fill();
    t.deepEqual(await issue(20, askToken), [503]);
    while (!server.stdout.includes("a checkpoint failed")) {
      fill(256 * 1024);
      await issue(100, askToken);
    }
    fill();
    // The checkpoint may have succeeded when it was retried with the space that was left: the log has room until the
    // next one, which fails.
    while (!(await issue(100, askToken)).includes(503));
    for (const reply of [await createLink(api), await signIn()]) {
      isProblem(t, reply, { status: 503, code: "temporarily_unavailable" });
      t.regex(reply.headers.get("retry-after") ?? "", /^\d+$/);
    }
    const token = await askToken();
    t.is(token.status, 503);
    t.like(token.body, { error: "temporarily_unavailable" });
    t.regex(token.headers.get("retry-after") ?? "", /^\d+$/);
    t.is((await api.get("/v1/links")).status, 200);
    t.is((await api.get(`/v1/links/${links[0]?.id}`)).status, 200);
    t.is((await fetch(`${url}/${links[0]?.slug}`, { redirect: "manual" })).status, 302);

    const before = beginnings();
    empty();
    t.is((await signIn()).status, 200);
    t.is((await askToken()).status, 200);
    links.push(await api.createLink());
    t.deepEqual(await issue(2 * WRITES_PER_CHECKPOINT, askToken), [200]);
    await until(async () => {
      links.push(await api.createLink());
      return beginnings() > before || undefined;
    });
    t.is((await signIn()).status, 200);
    for (const { id } of links) t.is((await api.get(`/v1/links/${id}`)).status, 200);
    const { code, signal, stderr } = await server.stop();
    t.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: "" });
  });

  test.serial("SQLite: a full disk does not hold the exit up", async (t) => {
    const { server, askToken, signIn } = await start();
    fill();
    t.deepEqual(await issue(100, askToken), [503]);
    t.is((await signIn()).status, 503);
    const { code, signal, stderr } = await server.stop();
    t.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: "" });
    empty();
    const again = await start();
    t.is((await again.signIn()).status, 200);
    t.is((await again.server.stop()).code, 0);
  });
}
