import { randomBytes } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import { apiAt, isProblem, type Reply } from "../harness/api.ts";
import { createTestDatabase } from "../harness/database.ts";
import { postForm, startTestService, type TestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";

const redis = process.env.TEST_REDIS_URL;
const GROWTH = 600;

/** Nothing but a Redis can be shared; CI always names one. */
function withRedis(title: string, run: (t: ExecutionContext, url: string) => Promise<void>): void {
  if (!redis) skip(title, "set TEST_REDIS_URL to the address of a Redis");
  // Keys of this run alone: what it counts is counted nowhere else.
  else test(title, (t) => run(t, `${redis}?keyPrefix=test-${randomBytes(6).toString("hex")}:`));
}

const remainingOf = ({ headers }: Reply<unknown>) =>
  Number(/;r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1]);

/** The calls of one organization at one of the servers. */
async function callerAt(service: TestService, app: Parameters<TestService["token"]>[0]) {
  const api = apiAt(service.url, await service.token(app));
  return () => api.get("/v1/organization");
}

/** Two servers on one database and one Redis. */
async function twoServers(redisUrl: string) {
  const database = await createTestDatabase();
  const shared = {
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    RATE_LIMIT: "on",
    REDIS_URL: redisUrl,
  };
  const [first, second] = [await startTestService(shared), await startTestService(shared)];
  async function close() {
    await Promise.all([first.close(), second.close()]);
    await database.drop();
  }
  return { first, second, close };
}

withRedis("sec 96: servers that share a Redis share the limit of an organization", async (t, url) => {
  const { first, second, close } = await twoServers(url);
  const app = await first.createOrganization();
  const [here, there] = [await callerAt(first, app), await callerAt(second, app)];
  t.is(remainingOf(await here()), GROWTH - 1);
  t.is(remainingOf(await there()), GROWTH - 2);
  for (let calls = 2; calls < GROWTH; calls += 46) {
    const many = Math.min(46, GROWTH - calls);
    await Promise.all(Array.from({ length: many }, (_, n) => (n % 2 ? here() : there())));
  }
  isProblem(t, await here(), { status: 429, code: "rate_limited" });
  isProblem(t, await there(), { status: 429, code: "rate_limited" });
  await close();
});

withRedis("sec 57: servers that share a Redis share the limits on guessing", async (t, url) => {
  const { first, second, close } = await twoServers(url);
  const app = await first.createOrganization();
  const guess = ({ url }: TestService) =>
    postForm(`${url}/oauth/token`, {
      grant_type: "client_credentials",
      client_id: app.clientId,
      client_secret: "lgs_wrong",
    });
  const statuses: number[] = [];
  // A guess that Redis was too slow to count is counted by the server alone.
  while (statuses.at(-1) !== 429 && statuses.length < 80) statuses.push((await guess(first)).status);
  t.true(statuses.length > 40 && statuses.slice(0, -1).every((status) => status === 401));
  const refused = await guess(second);
  t.is(refused.status, 429);
  t.true(Number(refused.headers.get("retry-after")) >= 1);
  await close();
});

withRedis(
  "without its Redis a server goes on and counts by itself, and shares again when it is back",
  async (t, url) => {
    const cable = await startTcpProxy(url);
    const service = await startTestService({ RATE_LIMIT: "on", REDIS_URL: cable.through(url) });
    const call = await callerAt(service, await service.createOrganization());
    t.is(remainingOf(await call()), GROWTH - 1);
    for (const how of ["refuse", "silence"] as const) {
      await cable.cut(how);
      for (let calls = 0; calls < 5; calls++) t.is((await call()).status, 200, how);
      t.true(remainingOf(await call()) < GROWTH - 1, "the calls are still counted");
    }
    const counted = remainingOf(await call());
    await cable.restore();
    // Redis knows of fewer calls than the server counted while it was away.
    const deadline = Date.now() + 20_000;
    while (remainingOf(await call()) <= counted) if (Date.now() > deadline) return t.fail("not shared again");
    await service.close();
    await cable.close();
  },
);

test("a Redis that never answers keeps nothing from starting or from being limited", async (t) => {
  const service = await startTestService({ RATE_LIMIT: "on", REDIS_URL: "redis://127.0.0.1:1" });
  const call = await callerAt(service, await service.createOrganization());
  t.is(remainingOf(await call()), GROWTH - 1);
  await Promise.all(Array.from({ length: GROWTH - 1 }, call));
  isProblem(t, await call(), { status: 429, code: "rate_limited" });
  await service.close();
});
