import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { childrenOf } from "../harness/child-processes.ts";
import { apiAt } from "../harness/clients/api.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { atOnce } from "../harness/database/storage.ts";
import { startWorkers } from "../harness/workers.ts";

const {
  url,
  program: server,
  storage,
  createOrganization,
  token,
  close,
} = await startWorkers({ RATE_LIMIT: "off" });
test.after.always(close);

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Polls for a condition that emits no event, such as the child processes of another program. */
async function until(condition: () => Promise<boolean>) {
  while (!(await condition())) await sleep(50);
}

/** Counts the dead workers in the log. */
const deaths = () => server.stdout.match(/worker died/g)?.length ?? 0;

test.serial("two workers serve one port", async (t) => {
  t.is((await childrenOf(server.pid)).length, 2);
  const app = await createOrganization();
  const tokens = await atOnce(10, () => token(app));
  const answers = await atOnce(20, (index) => apiAt(url, tokens[index % 10]).get("/v1/links"));
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
});

/** Returns the process IDs of the workers that answer new connections. */
async function answering(): Promise<number[]> {
  const answers = await atOnce(20, () => sendRaw(url, "/readyz?verbose"));
  return [...new Set(answers.map(({ text }) => JSON.parse(text).pid as number))];
}

test.serial("a killed worker is replaced while the service keeps running", async (t) => {
  const app = await createOrganization();
  for (let round = 0; round < 2; round++) {
    await until(async () => (await answering()).length === 2);
    const before = await childrenOf(server.pid);
    const victim = before[round] as number;
    process.kill(victim, "SIGKILL");
    // Until the primary notices, it may still assign connections to the dead worker; open ones are closed with it.
    await until(async () => deaths() > round);
    await nextTurn();
    await until(async () => {
      const api = apiAt(url, await token(app));
      const link = await api.createLink();
      t.is((await api.get(`/v1/links/${link.id}`)).status, 200);
      return (await answering()).some((pid) => !before.includes(pid));
    });
    const now = await childrenOf(server.pid);
    t.is(now.length, 2);
    t.is(now.filter((pid) => before.includes(pid)).length, 1);
  }
  t.is(deaths(), 2);
});

test.serial("SIGTERM stops every worker with exit code 0, and stores what was confirmed", async (t) => {
  const workers = await childrenOf(server.pid);
  const app = await createOrganization();
  const api = apiAt(url, await token(app));
  const link = await api.createLink();
  t.deepEqual(
    new Set((await atOnce(50, () => api.get(`/${link.slug}`))).map(({ status }) => status)),
    new Set([302]),
  );
  const { code, signal, stderr } = await server.stop();
  t.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: "" });
  for (const pid of [server.pid, ...workers]) t.false(isAlive(pid));
  t.is((await storage.links.find(app.id, link.id))?.clicks, 50);
  await t.throwsAsync(fetch(`${url}/healthz`));
});
