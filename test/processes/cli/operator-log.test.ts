import { hostname, userInfo } from "node:os";
import test from "ava";
import { EVENT_DATA_SCHEMAS } from "../../../resources/events/schemas.ts";
import { readSettings } from "../../../server/settings/config.ts";
import { publicUrlsOf } from "../../../server/settings/public-urls.ts";
import { commandRunner } from "../../harness/commands.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { inspect } from "../../harness/database/test-database.ts";
import { prepareServers } from "../../harness/new-server.ts";
import { runCommand, startCommand } from "../../harness/program.ts";
import { until } from "../../harness/webhooks.ts";

export const databases = "all";
const changes = { BASE_URL: "http://localhost:4321" };
const { settings, storage } = await prepareServers(changes, { empty: true });
const all = readSettings(settings);
const run = commandRunner({ storage, settings: all, urls: publicUrlsOf(all, 4321) });
const { knex } = inspect(settings.DATABASE_URL);

const log = async (...options: string[]) => (await run(["audit", "operator", ...options])).commands;
type Logs = { ok: boolean }[];

test.serial("commands that change something are recorded: who ran them and how they ended", async (t) => {
  await run(["migrate"]);
  const { organization } = await run(["org", "create", "Acme", "--plan", "growth"]);
  await run(["org", "suspend", organization.id, "--reason", "Phishing links"]);
  await t.throwsAsync(run(["user", "disable", "unknown"]), { code: "not_found" });
  for (const words of [["org", "list"], ["org", "show", organization.id], ["doctor"]]) await run(words);

  const [disabled, suspended, created, migrated, ...more] = await log();
  t.deepEqual(more, []);
  t.like(migrated, { command: "migrate", outcome: "succeeded" });
  t.like(created, { command: "org create", arguments: ["Acme"], options: { plan: "growth" }, error: null });
  t.like(suspended, {
    ...{ command: "org suspend", arguments: [organization.id], options: { reason: "Phishing links" } },
    ...{ os_user: userInfo().username, host: hostname(), outcome: "succeeded" },
  });
  t.like(disabled, { command: "user disable", outcome: "failed", error: "not_found" });
  for (const { id, started_at, finished_at } of [disabled, suspended, created, migrated]) {
    t.regex(id, /^evt_/);
    t.true(started_at <= finished_at);
  }
  t.deepEqual(await log("--limit", "1", "--before", suspended.id), [created]);
  await t.throwsAsync(log("--limit", "0"), { code: "invalid_limit" });
});

test.serial("the operator's log holds no secret", async (t) => {
  const { organization } = await run(["org", "create", "Secretive", "--plan", "growth"]);
  const password = "a long enough password";
  await run(["user", "create", "ada", "--org", organization.id], password);
  const { url: reset } = await run(["user", "reset-password", "ada"]);
  const { client_secret } = await run(["client", "rotate", organization.id]);
  const token = new URL(reset).pathname.split("/").at(-1) as string;
  for (const words of [
    ["client", "disable", client_secret],
    ["link", "show", reset],
    ["link", "disable", reset],
    ["link", "disable", `https://go.example.com/spring?key=${token}`],
    ["client", "redirect-uris", organization.id, `https://ada:${token}@a.example/callback`],
    ["client", "add-key", organization.id, `{"kty":"EC","d":"${token}"}`],
    ["app", "approve", organization.id, `https://a.example/?secret=${token}`],
    ["org", "suspend", organization.id, "--reason", `leaked ${client_secret}`],
  ])
    await run(words).catch(({ code }) => t.truthy(code));

  const rows = await knex("events").where({ organization_id: "operator" });
  t.true(rows.length > 20);
  for (const secret of [password, client_secret, token]) {
    t.false(JSON.stringify(rows).includes(secret));
    t.false(JSON.stringify(await log()).includes(secret));
  }
  for (const { type, data } of rows) {
    const stored = JSON.parse(data);
    t.deepEqual(EVENT_DATA_SCHEMAS[type].parse(stored), stored, type);
  }
});

test.serial("a command that is killed leaves the entry of its start", async (t) => {
  const { organization } = await run(["org", "create", "Interrupted"]);
  // It has started once it waits for the password.
  const words = ["user", "create", "grace", "--org", organization.id];
  const command = startCommand(words, { settings });
  await until(async () => (await log("--limit", "1"))[0].command === "user create" || undefined);
  command.kill("SIGKILL");
  await command.ended;
  const unfinished = { arguments: ["grace"], outcome: null, finished_at: null, error: null };
  t.like((await log("--limit", "1"))[0], unfinished);
  t.true(((await run(["audit", "verify"])).logs as Logs).every(({ ok }) => ok));
});

test.serial("a log is verified with a head that was printed, as text or as JSON", async (t) => {
  const printed = await runCommand(["audit", "head", "operator"], { settings });
  t.is(printed.code, 0, printed.stderr);
  const { heads } = await run(["audit", "head", "operator"]);
  const [{ seq, hash, head }] = heads;
  t.deepEqual(heads, [{ organization_id: "operator", seq, hash, head: `operator:${seq}:${hash}` }]);
  t.is(printed.stdout, `${head}\n`);
  await run(["org", "create", "Later"]);
  const later = (await run(["audit", "head"])).heads.map((one: { head: string }) => one.head);
  t.true(((await run(["audit", "verify", "--head", head, ...later])).logs as Logs).every(({ ok }) => ok));

  const forged = head.replace(/.{8}$/, "00000000");
  const words = ["audit", "verify", "operator", "--head", forged, "--json"];
  const { code, stdout } = await runCommand(words, { settings });
  t.is(code, 1);
  t.like(JSON.parse(stdout).logs, [{ organization_id: "operator", ok: false, broken: { seq } }]);
  const isInvalid = { code: "invalid_head" };
  await t.throwsAsync(run(["audit", "verify", "--head", hash]), isInvalid);
  await t.throwsAsync(run(["audit", "verify", "org_other", "--head", head]), isInvalid);
  await t.throwsAsync(run(["audit", "head", "org_other"]), { code: "not_found" });
});

test.serial("concurrent commands get one place in the chain each, and a change breaks it", async (t) => {
  const before = (await run(["audit", "verify", "operator"])).logs[0];
  await atOnce(8, (index) => runCommand(["org", "create", `Parallel ${index}`], { settings }));
  const [after] = (await run(["audit", "verify", "operator"])).logs;
  t.like(after, { organization_id: "operator", ok: true, last_seq: before.last_seq + 16 });

  await knex("events").where({ organization_id: "operator", seq: 3 }).update({ data: "{}" });
  const { code, stdout } = await runCommand(["audit", "verify", "--json"], { settings });
  t.is(code, 1);
  const broken = JSON.parse(stdout).logs.filter(({ ok }: { ok: boolean }) => !ok);
  t.like(broken, { length: 1, 0: { organization_id: "operator", broken: { seq: 3 } } });
});
