import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { apiAt, type LinkBody } from "../harness/clients/api.ts";
import { basic } from "../harness/clients/oauth.ts";
import { atOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { createDisk, type Disk } from "../harness/disk/disk.ts";
import { startOnNewDatabase } from "../harness/new-server.ts";
import { addressOf, ROOT, temporaryFolder } from "../harness/program.ts";
import { rounds } from "../harness/rounds.ts";
import { populate, postForm } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { HAS_STRACE, isInOrder, readCalls, startTraced } from "../harness/system-calls.ts";
import { until } from "../harness/webhooks.ts";

const ROUNDS = rounds(3, 300);
const REPEATED = 20;
const LOOKS = 50;
// Enough for a checkpoint.
const TOKENS = 2000;

async function start(t: ExecutionContext, disk: Disk, parameters = "") {
  const settings = { ...disk.environment, LOG_LEVEL: "error" };
  const service = await startOnNewDatabase(settings, { parameters });
  t.teardown(() => {
    disk.work();
    return service.stop();
  });
  const organization = await service.createOrganization();
  const accessToken = await service.token(organization);
  return { ...service, organization, accessToken, api: apiAt(service.url, accessToken) };
}

type Caller = Awaited<ReturnType<typeof start>>;
/** How to request a change, and how to find out that it is committed. */
type Prepared = { request(): Promise<{ status: number }>; isCommitted(): Promise<boolean> };
type Change = { prepare(caller: Caller): Promise<Prepared>; first: number; again: number };

const url = "https://example.com/";

const CHANGES: Record<string, Change> = {
  "PUT with an external id": {
    first: 201,
    again: 200,
    async prepare({ api, organization, storage: { links } }) {
      const id = randomUUID();
      return {
        request: () => api.send("PUT", `/v1/links/by-external-id/${id}`, { json: { url } }),
        isCommitted: async () => Boolean(await links.findByExternalId(organization.id, id)),
      };
    },
  },
  "revocation of a token": {
    first: 200,
    again: 200,
    async prepare({ organization, token: issue, url: address, storage }) {
      const token = await issue(organization);
      return {
        request: () => postForm(`${address}/oauth/revoke`, { token }, basic(organization)),
        isCommitted: async () => !(await storage.findActiveToken(token)),
      };
    },
  },
  "DELETE of a link": {
    first: 204,
    again: 404,
    async prepare({ api, organization, storage: { links } }) {
      const { id } = await api.createLink();
      return {
        request: () => api.send("DELETE", `/v1/links/${id}`),
        isCommitted: async () => !(await links.find(organization.id, id)),
      };
    },
  },
  "POST with an idempotency key": {
    first: 201,
    again: 201,
    async prepare({ api, storage: { links } }) {
      const slug = randomUUID();
      const headers = { "idempotency-key": slug };
      return {
        request: () => api.send<LinkBody>("POST", "/v1/links", { json: { url, slug }, headers }),
        isCommitted: async () => Boolean(await links.resolve(slug)),
      };
    },
  },
};

/** Sends a request twice while the disk syncs the first one. Returns whether one was answered, or its change seen, before. */
async function isEarly(disk: Disk, { request, isCommitted }: Prepared) {
  let isOnDisk = false;
  let early = false;
  const send = async () => {
    let reply = await request();
    if (!isOnDisk) early = true;
    // The response of an idempotent request is committed after its change.
    while (reply.status === 409) reply = await request();
    return reply.status;
  };
  const before = disk.syncs();
  disk.hold();
  const first = send();
  await until(async () => disk.syncs() > before || undefined);
  const again = send();
  for (let look = 0; look < LOOKS; look++) {
    if (await isCommitted()) early = true;
    await nextTurn();
  }
  isOnDisk = true;
  disk.work();
  return { early, statuses: [await first, await again] };
}

function testAnswers(disk: Disk) {
  test.serial("SQLite: a repeated change is answered when the first one is on the disk", async (t) => {
    const caller = await start(t, disk);
    for (const [name, { prepare, first, again }] of Object.entries(CHANGES))
      for (let round = 0; round < ROUNDS; round++) {
        const result = await isEarly(disk, await prepare(caller));
        // The sync that was seen may be of a write in the background, so either of the two may have arrived first.
        t.deepEqual(result.statuses.sort(), [first, again].sort(), name);
        t.false(result.early, name);
      }
  });

  test.serial("SQLite: a new token and link wait for one sync each, an introspection for none", async (t) => {
    const { url, organization, accessToken, api, token } = await start(t, disk);
    await api.createLink();
    /** Counts the syncs per request. Others are due to writes in the background, which are rare. */
    const count = async (request: () => Promise<unknown>) => {
      const before = disk.syncs();
      for (let index = 0; index < REPEATED; index++) await request();
      return Math.round((disk.syncs() - before) / REPEATED);
    };
    t.is(await count(() => token(organization)), 1);
    t.is(await count(() => api.createLink()), 1);
    const form = { token: accessToken };
    const introspect = () => postForm(`${url}/oauth/introspect`, form, basic(organization));
    t.is(await count(introspect), 0);
    t.is(await count(() => api.get("/v1/links")), 0);
  });

  test.serial("SQLite: no concurrent write is seen or answered before it is on the disk", async (t) => {
    const { api, storage } = await start(t, disk);
    const before = disk.syncs();
    let completed = 0;
    disk.hold();
    const writes = atOnce(10, (n) => api.createLink({ slug: `slug-${n}` }).then(() => completed++));
    await until(async () => disk.syncs() > before || undefined);
    for (let look = 0; look < LOOKS; look++, await nextTurn())
      t.is(await storage.links.resolve(`slug-${look % 10}`), undefined);
    t.is(completed, 0);
    disk.work();
    await writes;
  });

  test.serial("SQLite: writes with ?synchronous=normal do not wait for the disk", async (t) => {
    const { api } = await start(t, disk, "?synchronous=normal");
    disk.hold();
    const before = disk.syncs();
    await atOnce(10, () => api.createLink());
    t.is(disk.syncs(), before);
  });
}

const disk = engine === "sqlite" ? createDisk() : undefined;
if (disk) testAnswers(disk);
else if (engine === "sqlite")
  skip("SQLite: answers wait for the disk", "gcc is not installed, or not on Linux");

const ORDER =
  "SQLite: new files are on the disk before a connection is accepted, the log before a checkpoint";
if (engine === "sqlite" && !HAS_STRACE) skip(ORDER, "strace is not installed, or may not trace processes");
else if (engine === "sqlite")
  test.serial(ORDER, async (t) => {
    const [cwd, trace] = [temporaryFolder("order"), `${temporaryFolder("trace")}/calls`];
    const settings = { PORT: "0", RATE_LIMIT: "off", LOG_LEVEL: "error" };
    const server = startTraced(trace, [`${ROOT}server/main.ts`], { cwd, settings });
    const { token } = populate(await addressOf(server), undefined as never);
    const [, clientId = "", clientSecret = ""] =
      /client id +(\S+)\n +client secret +(\S+)/.exec(server.stdout) ?? [];
    await atOnce(8, async () => {
      for (let count = 0; count < TOKENS / 8; count++) await token({ clientId, clientSecret });
    });
    server.killGroup();
    await server.ended;

    const calls = readCalls(trace, `${cwd}/data`);
    const accepted = calls.indexOf("accept4");
    const [file, log] = ["linkgate.sqlite", "linkgate.sqlite-wal"] as const;
    const before = [`openat ${file}`, `fsync ${file}`, "fsync .", `openat ${log}`, `fsync ${log}`, "fsync ."];
    isInOrder(t, calls.slice(0, accepted), before);
    // Of the log and the file, one is written to only while nothing that was written to the other waits for the disk.
    const unsynced = new Set<string>();
    const synced = new Set<string>();
    for (const call of calls.slice(accepted)) {
      const [name, of = ""] = call.split(" ");
      if (name === "fsync" && unsynced.delete(of)) synced.add(of);
      if (name !== "pwrite64") continue;
      t.false(unsynced.has(of === file ? log : file), call);
      unsynced.add(of);
    }
    t.deepEqual([...synced].sort(), [file, log], "a checkpoint was made");
  });
