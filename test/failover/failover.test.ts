import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { freePort, Program, stopPrograms } from "../harness/program.ts";
import { IS_THOROUGH } from "../harness/rounds.ts";
import { skip } from "../harness/skip.ts";
import { startGalera } from "./galera.ts";
import { findDifferences, type Load, startLoad } from "./load.ts";
import { type Postgres, startPostgres } from "./postgres.ts";
import { GALERA_PROGRAMS, POSTGRES_PROGRAMS } from "./programs.ts";
import { type RunningService, startLinkgate } from "./service.ts";

const LANES = { token: 2, link: 3, revocation: 2, redirect: 3 };
// Patroni's ttl and loop_wait, and what a new primary and its clients need.
const FAILOVER_S = 30;
const MISSING_MS = 60_000;
const SWITCHOVER_S = 15;
// What a client takes for a slow response.
const UNNOTICED_S = 3;

type Scenario = {
  act(load: Load): Promise<unknown>;
  lanes?: typeof LANES;
  /** Repairs the damage before the acknowledged facts are compared. */
  restore?(): Promise<unknown>;
};

/** Runs a scenario under load. Every acknowledged fact must then be stored and delivered. */
async function run(t: ExecutionContext, service: RunningService, { act, lanes = LANES, restore }: Scenario) {
  const { subject, followed, facts } = service;
  const load = startLoad(subject, followed, facts, lanes);
  const { redirect, ...others } = load.tallies;
  const tallies = Object.entries(load.tallies);
  const writesOf = () => Math.max(...Object.values(others).map(({ longestS }) => longestS));
  try {
    await load.untilSuccessful(10);
    await act(load);
    await load.untilSuccessful(30);
  } finally {
    await load.stop();
    console.log(`${t.title}:
  seconds without writes ${writesOf().toFixed(1)}, without redirects ${redirect.longestS.toFixed(1)}
  ${tallies.map(([kind, { statuses }]) => `${kind} ${JSON.stringify(statuses)}`).join(", ")}`);
    await restore?.();
  }
  const unexpected = tallies.flatMap(([kind, tally]) => tally.unexpected.map((text) => `${kind}: ${text}`));
  const differences = await findDifferences(subject, facts);
  const { tokens, revoked, links } = facts;
  console.log(
    `  ${differences.length} of ${tokens.size} tokens, ${revoked.size} revocations, ${links.size} links with their events differ`,
  );
  t.deepEqual(unexpected.slice(0, 10), [], `${unexpected.length} unexpected responses`);
  t.deepEqual(differences.slice(0, 10), [], `${differences.length} differ`);
  const unavailable = tallies.some(([, { statuses }]) => statuses[503] !== undefined);
  return { writes: writesOf(), redirects: redirect.longestS, unavailable };
}

const missing = POSTGRES_PROGRAMS.filter((program) => !existsSync(program));
const postgres = missing.length > 0 ? undefined : await startPostgres();
const service = postgres && (await startLinkgate(postgres.url));
test.after.always(async () => {
  await service?.close();
  await postgres?.close();
  stopPrograms();
});
if (postgres && service) testPostgres(postgres, service);
else skip("a database that fails over loses nothing", `${missing} not installed`);

function testPostgres(postgres: Postgres, service: RunningService): void {
  test.serial("a primary that loses its power is replaced, and nothing acknowledged is lost", async (t) => {
    const machine = await postgres.primary();
    const { writes } = await run(t, service, {
      act: () => machine.signal("SIGKILL"),
      async restore() {
        machine.start();
        await postgres.standby();
      },
    });
    t.true(writes < FAILOVER_S);
  });

  test.serial("a switchover interrupts writes for seconds", async (t) => {
    const { writes } = await run(t, service, { act: postgres.switchOver, restore: postgres.standby });
    t.true(writes < SWITCHOVER_S);
  });

  if (!IS_THOROUGH) return;

  test.serial("a primary that vanishes is replaced, and acknowledges nothing when it is back", async (t) => {
    const machine = await postgres.primary();
    const { writes } = await run(t, service, {
      async act(load) {
        await machine.signal("SIGSTOP");
        await load.untilSuccessful(10);
        await machine.signal("SIGCONT");
        await postgres.standby();
      },
      restore: () => machine.signal("SIGCONT"),
    });
    t.true(writes < FAILOVER_S);
  });

  test.serial("without a standby, writes continue within seconds, and redirects all the time", async (t) => {
    const machine = await postgres.standby();
    const { writes, redirects } = await run(t, service, {
      lanes: { ...LANES, link: 60 },
      async act() {
        await machine.signal("SIGSTOP");
        await sleep(MISSING_MS);
      },
      async restore() {
        await machine.signal("SIGCONT");
        await postgres.standby();
      },
    });
    t.true(writes < FAILOVER_S);
    t.true(redirects < UNNOTICED_S);
  });

  test.serial("a restart of PostgreSQL behind PgBouncer is a 503 for seconds", async (t) => {
    const { writes } = await run(t, service, { act: postgres.restart, restore: postgres.standby });
    t.true(writes < SWITCHOVER_S);
  });

  test.serial("without Redis, no request fails", async (t) => {
    const port = await freePort();
    const startRedis = () => new Program("/usr/bin/redis-server", ["--port", String(port), "--save", ""]);
    let redis = startRedis();
    await service.restart({ RATE_LIMIT: "on", REDIS_URL: `redis://127.0.0.1:${port}` });
    const { unavailable } = await run(t, service, {
      lanes: { token: 1, link: 1, revocation: 1, redirect: 2 },
      async act(load) {
        redis.kill("SIGSTOP");
        await load.untilSuccessful(30);
        redis.kill("SIGKILL");
        await load.untilSuccessful(30);
        redis = startRedis();
      },
      restore: () => service.restart(),
    });
    await redis.stop();
    t.false(unavailable);
  });
}

const notInstalled = GALERA_PROGRAMS.filter((program) => !existsSync(program));
const GALERA =
  "a Galera node that is killed is replaced by another, and nothing that was acknowledged is lost";
if (IS_THOROUGH && notInstalled.length > 0) skip(GALERA, `${notInstalled} not installed`);
else if (IS_THOROUGH)
  test.serial(GALERA, async (t) => {
    const galera = await startGalera();
    t.teardown(galera.close);
    const service = await startLinkgate(galera.url);
    t.teardown(service.close);
    const { writes } = await run(t, service, { act: galera.killWriter });
    t.true(writes < FAILOVER_S);
  });
