import { mkdirSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { inspect } from "../harness/database/test-database.ts";
import { CLI, Program, ROOT, resultOf, runShell, startServer, temporaryFolder } from "../harness/program.ts";

const SERVER = `${process.execPath} --import ${ROOT}server/runtime.js ${ROOT}server/main.ts`;
// The second process is the reader of a pipe, which has ended when the first writes.
const CLOSED = "exec > >(:); wait $!;";

const folder = temporaryFolder("output");
const settings = { DATABASE_URL: `sqlite:${folder}/linkgate.sqlite`, BASE_URL: "http://localhost:3000" };
const create = async (...words: string[]) =>
  (await resultOf<{ organization: { id: string } }>(["org", "create", ...words], { settings })).organization;

const { id } = await create("Acme", "--plan", "growth");
const { id: freeId } = await create("Free");
const { knex } = inspect(settings.DATABASE_URL);

/** Returns everything that the commands below could change, except the operator's log. */
async function state(): Promise<object[][]> {
  const tables = ["organizations", "clients", "client_secrets", "one_time_links"];
  const rows = await Promise.all(tables.map((table) => knex(table).select()));
  return [...rows, await knex("events").whereIn("organization_id", [id, freeId]).select("id")];
}

const UNWRITTEN: [command: string, script: string, error: string][] = [
  ["org create", `${CLI} org create Lost --plan growth --json > /dev/full`, "ENOSPC"],
  ["client rotate", `${CLI} client rotate ${id} --compromised --json > /dev/full`, "ENOSPC"],
  ["client rotate", `${CLOSED} ${CLI} client rotate ${id} --json`, "EPIPE"],
];

for (const [command, script, error] of UNWRITTEN)
  test.serial(`"${command}" fails and changes nothing if its secret gets ${error}`, async (t) => {
    const before = await state();
    const shown = await runShell(script, { settings });
    const message = `The result can't be written (${error}). Nothing was changed.`;
    t.is(shown.code, 1);
    t.deepEqual(JSON.parse(shown.stderr), { error: { code: "output_failed", message } });
    t.deepEqual(await state(), before);
  });

test.serial("a command whose result can't be written fails, and says that its change was made", async (t) => {
  const changed = await runShell(`${CLI} org suspend ${freeId} > /dev/full`, { settings });
  t.like(changed, { code: 1, stderr: "The result can't be written (ENOSPC). The change was made.\n" });
  t.truthy(await knex("organizations").where({ id: freeId }).whereNotNull("suspended_at").first());
  const read = await runShell(`${CLI} org list > /dev/full`, { settings });
  t.like(read, { code: 1, stderr: "The result can't be written (ENOSPC).\n" });
});

for (const words of ["org list", "dev --port 0"])
  test.serial(`"${words}" ends quietly after its reader has closed the pipe`, async (t) => {
    t.like(await runShell(`${CLOSED} ${CLI} ${words}`, { settings }), { code: 0, stderr: "" });
  });

for (const WORKERS of ["1", "2"])
  test.serial(`with WORKERS=${WORKERS}, credentials not shown are left to the next start`, async (t) => {
    const cwd = path.join(folder, `demo-${WORKERS}`);
    mkdirSync(cwd);
    const own = { PORT: "0", WORKERS };
    const first = new Program("bash", ["-c", `exec ${SERVER} > /dev/full`], { cwd, settings: own });
    await first.says(/^The log can't be written/m, "stderr");
    const { code, stderr } = await first.stop();
    t.is(code, 0, stderr);
    const second = startServer({ cwd, settings: own });
    await second.says(/linkgate listening/);
    t.regex(second.stdout, /client secret {2}lgs_/);
    await second.stop();
  });
