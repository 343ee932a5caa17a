import { randomBytes, randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { type Api, apiAt, type LinkBody } from "../harness/clients/api.ts";
import { modernRequest, postMcp } from "../harness/clients/mcp.ts";
import { atOnce } from "../harness/database/storage.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { createDisk, type Disk } from "../harness/disk/disk.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { rounds } from "../harness/rounds.ts";
import { bearer, populate, postForm, type TestOrganization } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const ROUNDS = rounds(3, 300);
const REPEATED = 20;
const LOOKS = 50;

test.after.always(stopPrograms);

/** Starts a server on a disk, and opens its database in this process. */
async function start(disk: Disk, options = "") {
  const { url, drop } = await createTestDatabase();
  const key = randomBytes(32);
  const server = startServer({
    settings: {
      ...disk.environment,
      DATABASE_URL: `${url}${options}`,
      ENCRYPTION_KEY: key.toString("base64url"),
      PORT: "0",
      RATE_LIMIT: "off",
      LOG_LEVEL: "error",
    },
  });
  const address = await addressOf(server);
  const storage = openStorage(`${url}${options}`, key);
  return {
    server,
    address,
    storage,
    seed: populate(address, storage),
    async close() {
      disk.work();
      await storage.close();
      await server.stop();
      await drop();
    },
  };
}

type Service = Awaited<ReturnType<typeof start>>;
type Caller = { organization: TestOrganization; api: Api; token: string };
type Change = {
  /** Prepares the change. Returns how to request it, and how to find out that it is committed. */
  prepare(
    caller: Caller,
    service: Service,
  ): Promise<{ request(): Promise<{ status: number }>; isCommitted(): Promise<boolean> }>;
  first: number;
  again: number;
};

const url = "https://example.com/";

const CHANGES: Record<string, Change> = {
  "PUT with an external id": {
    first: 201,
    again: 200,
    async prepare({ api, organization }, { storage: { links } }) {
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
    async prepare({ organization: { clientId, clientSecret, ...client } }, { seed, storage, address }) {
      const token = await seed.token({ clientId, clientSecret, ...client });
      const form = { token, client_id: clientId, client_secret: clientSecret };
      return {
        request: () => postForm(`${address}/oauth/revoke`, form),
        isCommitted: async () => !(await storage.findActiveToken(token)),
      };
    },
  },
  "PATCH of a link": {
    first: 200,
    again: 200,
    async prepare({ api, organization }, { storage: { links } }) {
      const { id } = await api.createLink();
      return {
        request: () => api.send("PATCH", `/v1/links/${id}`, { json: { title: "New" } }),
        isCommitted: async () => (await links.find(organization.id, id))?.title === "New",
      };
    },
  },
  "DELETE of a link": {
    first: 204,
    again: 404,
    async prepare({ api, organization }, { storage: { links } }) {
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
    async prepare({ api }, { storage: { links } }) {
      const slug = randomUUID();
      const headers = { "idempotency-key": slug };
      return {
        request: () => api.send<LinkBody>("POST", "/v1/links", { json: { url, slug }, headers }),
        isCommitted: async () => Boolean(await links.resolve(slug)),
      };
    },
  },
  "MCP tool": {
    first: 200,
    again: 200,
    async prepare({ organization, token }, { storage: { links }, address }) {
      const external_id = randomUUID();
      const { message, headers } = modernRequest("tools/call", {
        name: "upsert_link",
        arguments: { external_id, url },
      });
      return {
        request: () => postMcp(`${address}/mcp`, message, { ...headers, ...bearer(token) }),
        isCommitted: async () => Boolean(await links.findByExternalId(organization.id, external_id)),
      };
    },
  },
};

/** Sends a request twice while the disk syncs the first one. Returns whether one was answered, or its change seen, before. */
async function isEarly(disk: Disk, { request, isCommitted }: Awaited<ReturnType<Change["prepare"]>>) {
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
  test.after.always(disk.remove);

  for (const [name, { prepare, first, again }] of Object.entries(CHANGES)) {
    test.serial(`SQLite: a repeated ${name} is answered when the first one is on the disk`, async (t) => {
      const service = await start(disk);
      t.teardown(service.close);
      const organization = await service.seed.createOrganization();
      const token = await service.seed.token(organization);
      const caller = { organization, token, api: apiAt(service.address, token) };
      let early = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const result = await isEarly(disk, await prepare(caller, service));
        // The sync that was seen may be of a write in the background, so either of the two may have arrived first.
        t.deepEqual(result.statuses.sort(), [first, again].sort());
        if (result.early) early++;
      }
      t.is(early, 0, `of ${ROUNDS}`);
    });
  }

  test.serial(
    "SQLite: a new token and a new link wait for one sync each, an introspection for none",
    async (t) => {
      const service = await start(disk);
      t.teardown(service.close);
      const organization = await service.seed.createOrganization();
      const token = await service.seed.token(organization);
      const api = apiAt(service.address, token);
      await api.createLink();
      /** Counts the syncs per request. Others are due to writes in the background, which are rare. */
      const count = async (request: () => Promise<unknown>) => {
        const before = disk.syncs();
        for (let index = 0; index < REPEATED; index++) await request();
        return Math.round((disk.syncs() - before) / REPEATED);
      };
      t.is(await count(() => service.seed.token(organization)), 1);
      t.is(await count(() => api.createLink()), 1);
      const { clientId: client_id, clientSecret: client_secret } = organization;
      const introspect = () =>
        postForm(`${service.address}/oauth/introspect`, { token, client_id, client_secret });
      t.is(await count(introspect), 0);
      t.is(await count(() => api.get("/v1/links")), 0);
    },
  );

  test.serial("SQLite: a write completes when it is on the disk", async (t) => {
    const { storage, seed, address, close } = await start(disk);
    t.teardown(close);
    const api = apiAt(address, await seed.token(await seed.createOrganization()));
    disk.hold();
    let completed = 0;
    const writes = atOnce(10, async (index) => {
      await api.createLink({ slug: `slug-${index}` });
      completed++;
    });
    const areVisible = () =>
      Promise.all(Array.from({ length: 10 }, (_, n) => storage.links.resolve(`slug-${n}`)));
    for (let look = 0; look < LOOKS; look++) t.false((await areVisible()).some(Boolean));
    t.is(completed, 0);
    disk.work();
    await writes;
    t.true((await areVisible()).every(Boolean));
  });

  test.serial("SQLite: writes with ?synchronous=normal do not wait for the disk", async (t) => {
    const { seed, address, close } = await start(disk, "?synchronous=normal");
    t.teardown(close);
    disk.hold();
    const api = apiAt(address, await seed.token(await seed.createOrganization()));
    const before = disk.syncs();
    await atOnce(10, () => api.createLink());
    t.is(disk.syncs(), before);
  });
}

const disk = engine === "sqlite" ? createDisk() : undefined;
if (disk) testAnswers(disk);
else if (engine === "sqlite")
  skip("SQLite: answers wait for the disk", "gcc is not installed, or not on Linux");
