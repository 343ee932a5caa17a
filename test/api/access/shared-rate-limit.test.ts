import { randomBytes } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import { apiAt, isProblem, type Reply } from "../../harness/clients/api.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { postForm, startTestService, type TestService } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";
import { startTcpProxy } from "../../harness/tcp-proxy.ts";
import { until } from "../../harness/webhooks.ts";

const redis = process.env.TEST_REDIS_URL;
const GROWTH = 600;
const DISRUPTIONS = { refuse: "refuses connections", silence: "is silent", freeze: "freezes" };

/** Skips a test without Redis. CI always sets TEST_REDIS_URL. */
function withRedis(title: string, run: (t: ExecutionContext, url: string) => Promise<void>): void {
  if (!redis) skip(title, "set TEST_REDIS_URL to the URL of a Redis server");
  // A prefix per test, so no other test counts the same keys.
  else test(title, (t) => run(t, `${redis}?keyPrefix=test-${randomBytes(6).toString("hex")}:`));
}

const remainingOf = ({ headers }: Reply<unknown>) =>
  Number(/;r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1]);

async function callerAt(service: TestService, app: Parameters<TestService["token"]>[0]) {
  const api = apiAt(service.url, await service.token(app));
  return () => api.get("/v1/organization");
}

// If Redis is too slow to count a call, only the server itself counts it.
const MAX_MISSED = 20;

/** Calls a server that shares the count, until it refuses, and returns its last answer. */
async function refusalOf<Answer extends { status: number }>(call: () => Promise<Answer>): Promise<Answer> {
  let answer = await call();
  for (let calls = 1; answer.status !== 429 && calls < MAX_MISSED; calls++) answer = await call();
  return answer;
}

async function twoServers(t: ExecutionContext, redisUrl: string) {
  const database = await createTestDatabase();
  const shared = {
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    RATE_LIMIT: "on",
    REDIS_URL: redisUrl,
  };
  const [first, second] = [await startTestService(shared), await startTestService(shared)];
  t.teardown(async () => {
    await Promise.all([first.close(), second.close()]);
    await database.drop();
  });
  return { first, second };
}

withRedis("servers that share a Redis share the limit of an organization", async (t, url) => {
  const { first, second } = await twoServers(t, url);
  const app = await first.createOrganization();
  const [here, there] = [await callerAt(first, app), await callerAt(second, app)];
  t.is(remainingOf(await here()), GROWTH - 1);
  let calls = 1;
  while (remainingOf(await there()) >= GROWTH - calls) {
    t.true(++calls < MAX_MISSED);
    await here();
  }
});

withRedis("servers that share a Redis share the limit on failed client authentication", async (t, url) => {
  const { first, second } = await twoServers(t, url);
  const app = await first.createOrganization();
  const guess = ({ url }: TestService) =>
    postForm(`${url}/oauth/token`, {
      grant_type: "client_credentials",
      client_id: app.clientId,
      client_secret: "lgs_wrong",
    });
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length < 80) statuses.push((await guess(first)).status);
  t.true(statuses.length > 40 && statuses.slice(0, -1).every((status) => status === 401));
  const rejected = await refusalOf(() => guess(second));
  t.is(rejected.status, 429);
  t.true(Number(rejected.headers.get("retry-after")) >= 1);
});

for (const how of ["refuse", "silence", "freeze"] as const) {
  const title = `a server whose Redis ${DISRUPTIONS[how]} counts on its own, and shares the limit again later`;
  withRedis(title, async (t, url) => {
    const cable = await startTcpProxy(url);
    const service = await startTestService({ RATE_LIMIT: "on", REDIS_URL: cable.through(url) });
    const call = await callerAt(service, await service.createOrganization());
    t.is(remainingOf(await call()), GROWTH - 1);
    const before = cable.accepted();
    await cable.cut(how);
    for (let calls = 0; calls < 5; calls++) t.is((await call()).status, 200);
    // It waits for a frozen one once, and connects again.
    if (how === "freeze") await until(async () => cable.accepted() > before || undefined);
    t.true(remainingOf(await call()) < GROWTH - 1, "the calls are still counted");
    const counted = remainingOf(await call());
    if (how === "freeze") cable.reopen();
    else await cable.restore();
    // Redis counted fewer calls than the server did in the meantime.
    await until(async () => remainingOf(await call()) > counted || undefined);
    await service.close();
    await cable.close();
  });
}

test("an unreachable Redis prevents neither the start nor the limits", async (t) => {
  const service = await startTestService({ RATE_LIMIT: "on", REDIS_URL: "redis://127.0.0.1:1" });
  const call = await callerAt(service, await service.createOrganization());
  t.is(remainingOf(await call()), GROWTH - 1);
  await Promise.all(Array.from({ length: GROWTH - 1 }, call));
  isProblem(t, await call(), { status: 429, code: "rate_limited" });
  await service.close();
});
