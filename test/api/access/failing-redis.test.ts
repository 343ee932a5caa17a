import { existsSync } from "node:fs";
import test from "ava";
import { createDegradedStates } from "../../../server/observability/degraded.ts";
import { count, createRateLimitStore } from "../../../server/rate-limits/store.ts";
import { freePort, Program } from "../../harness/program.ts";
import { skip } from "../../harness/skip.ts";
import { until } from "../../harness/webhooks.ts";

const SERVER = "/usr/bin/redis-server";
const TITLE = "a Redis that accepts no writes is logged once, and each process counts for itself meanwhile";

if (!existsSync(SERVER)) skip(TITLE, "redis-server is not installed");
else
  test(TITLE, async (t) => {
    const port = await freePort();
    const server = new Program(SERVER, [`--port ${port}`, "--bind 127.0.0.1", "--save", ""]);
    await server.says(/Ready to accept connections/);
    const { Redis } = await import("ioredis");
    const admin = new Redis({ port });
    const lines: string[] = [];
    const write = (_: object, message: string) => void lines.push(message);
    const states = createDegradedStates({ error: write, info: write } as never);
    const settings = { RATE_LIMIT: true, REDIS_URL: `redis://127.0.0.1:${port}` };
    const store = await createRateLimitStore(settings as never, states.redis);
    const counter = store.create("failing", 5);
    t.is(await count(counter, "a"), 0);
    await admin.call("replicaof", "127.0.0.1", "1");
    for (let counts = 0; counts < 5; counts++) t.is(await count(counter, "b"), 0);
    t.true((await count(counter, "b")) > 0, "the limit of this process");
    t.is(states.values().redis, 1);
    await admin.call("replicaof", "no", "one");
    await until(async () => {
      await count(counter, "c");
      return states.values().redis === 0 || undefined;
    });
    t.deepEqual(lines, [
      "Redis is unavailable; each process applies rate limits by itself",
      "Redis is available again",
    ]);
    store.close();
    admin.disconnect();
    server.kill("SIGKILL");
    await server.ended;
  });
