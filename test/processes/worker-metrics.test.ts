import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { childrenOf } from "../harness/child-processes.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { atOnce } from "../harness/database/storage.ts";
import { readMetrics } from "../harness/metrics.ts";
import { freePort } from "../harness/port.ts";
import { startWorkers } from "../harness/workers.ts";

const metricsPort = await freePort();
const { url, program, token, createOrganization, close } = await startWorkers({
  RATE_LIMIT: "off",
  LOG_LEVEL: "info",
  METRICS_PORT: String(metricsPort),
});
const metricsUrl = `http://127.0.0.1:${metricsPort}`;
test.after.always(close);

const TOKENS = 'linkgate_http_requests_total{method="POST",route="/oauth/token",status="200"}';
const GRANTS = 'linkgate_grants_total{grant_type="client_credentials"}';

/** Polls for a condition that emits no event, such as the end of another program. */
async function until(condition: () => Promise<boolean>) {
  while (!(await condition())) await sleep(50);
}

const read = () => readMetrics(metricsUrl);
const counters = async () => {
  const metrics = await read();
  return [metrics.get(TOKENS), metrics.get(GRANTS)];
};

test.serial("each worker serves the metrics of all workers", async (t) => {
  const app = await createOrganization();
  await atOnce(40, () => token(app));
  // Each on a new connection, so that both workers answer.
  const samples = await atOnce(10, read);
  for (const metrics of samples) {
    t.is(metrics.get("linkgate_processes"), 2);
    t.is(metrics.get(TOKENS), 40);
    t.is(metrics.get(GRANTS), 40);
    t.is(metrics.get("linkgate_database_up"), 1, "not the sum of the workers");
  }
});

test.serial("counters don't go backward when the workers are restarted", async (t) => {
  const before = await childrenOf(program.pid);
  const app = await createOrganization();
  await atOnce(10, () => token(app));
  const [requests = 0] = await counters();
  program.kill("SIGHUP");
  let last = requests;
  await until(async () => {
    await token(app);
    const [now = 0] = await counters();
    t.true(now > last, `${now} after ${last}`);
    last = now;
    const children = await childrenOf(program.pid);
    return children.length === 2 && !children.some((pid) => before.includes(pid));
  });
  const metrics = await read();
  t.is(metrics.get("linkgate_processes"), 2);
  t.is(metrics.get(TOKENS), metrics.get(GRANTS));
});

test.serial("what a killed worker had counted at the last scrape stays counted", async (t) => {
  const [victim] = await childrenOf(program.pid);
  const before = await counters();
  process.kill(victim as number, "SIGKILL");
  await program.says(/worker died/);
  await until(async () => (await read()).get("linkgate_processes") === 2);
  t.deepEqual(await counters(), before);
});

test.serial("METRICS_PORT serves nothing but the metrics", async (t) => {
  t.is((await sendRaw(metricsUrl, "/readyz")).status, 404);
  t.is((await sendRaw(url, "/metrics")).status, 404);
});
