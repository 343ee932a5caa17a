import test, { type ExecutionContext } from "ava";
import { hasPgBouncer, startPgBouncer } from "../harness/database/pgbouncer.ts";
import { engine } from "../harness/database/test-database.ts";
import { prepareServers } from "../harness/new-server.ts";
import { skip } from "../harness/skip.ts";

export const databases = "all";

/** The sessions that all servers share, and what titles say about them. */
const POOLS = engine === "postgres" ? [2, 4] : [undefined];

async function preparePooled(t: ExecutionContext, poolSize: number | undefined) {
  const servers = await prepareServers({ DATABASE_TIMEOUT: "5", LOG_LEVEL: "warn" }, { empty: true });
  const { DATABASE_URL } = servers.settings;
  const pooler = poolSize ? await startPgBouncer(DATABASE_URL, { poolSize }) : undefined;
  t.teardown(async () => {
    await pooler?.stop();
  });
  return () => servers.start({ DATABASE_URL: pooler?.url ?? DATABASE_URL });
}

for (const poolSize of POOLS) {
  const way = poolSize ? `, on PostgreSQL through PgBouncer with ${poolSize} sessions` : "";
  const title = `three servers start on an empty database, then others beside them that delay no request${way}`;
  if (poolSize && !hasPgBouncer) {
    skip(title, "pgbouncer is not installed");
    continue;
  }
  test.serial(title, async (t) => {
    const start = await preparePooled(t, poolSize);
    const started = await Promise.all([start(), start(), start()]);
    for (const { url } of started) t.is((await fetch(`${url}/readyz`)).status, 200);
    const [{ url }] = started;
    let isStarting = true;
    const starts = Promise.all([start(), start(), start()]).finally(() => (isStarting = false));
    // A request that waited for the others would get 503.
    while (isStarting) t.is((await fetch(`${url}/readyz`)).status, 200);
    await starts;
  });
}
