import { randomBytes } from "node:crypto";
import { hostname, userInfo } from "node:os";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { EVENT_DATA_SCHEMAS } from "../../../resources/events/schemas.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { runCommand, startCommand, stopPrograms } from "../../harness/program.ts";

export const databases = "all";
export const stage = "processes";

const { url, drop } = await createTestDatabase();
const settings = {
  DATABASE_URL: url,
  BASE_URL: "http://localhost:4321",
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
};
test.after.always(stopPrograms);
test.after.always(drop);

async function run(words: string[], input = "") {
  const { code, stdout, stderr } = await runCommand([...words, "--json"], { settings }, input);
  return code === 0 ? JSON.parse(stdout) : JSON.parse(stderr);
}
const log = async (...options: string[]) => (await run(["audit", "operator", ...options])).commands;

test.serial(
  "commands that change something are recorded, with who ran them and how they ended",
  async (t) => {
    await run(["migrate"]);
    const { organization } = await run(["org", "create", "Acme", "--plan", "growth"]);
    await run(["org", "suspend", organization.id, "--reason", "Phishing links"]);
    await run(["user", "disable", "unknown"]);
    for (const words of [["org", "list"], ["org", "show", organization.id], ["doctor"], ["keys", "list"]])
      await run(words);

    const [disabled, suspended, created, migrated, ...more] = await log();
    t.deepEqual(more, []);
    t.like(migrated, { command: "migrate", outcome: "succeeded" });
    t.like(created, { command: "org create", arguments: ["Acme"], options: { plan: "growth" }, error: null });
    t.like(suspended, {
      command: "org suspend",
      arguments: [organization.id],
      options: { reason: "Phishing links" },
      os_user: userInfo().username,
      host: hostname(),
      outcome: "succeeded",
    });
    t.like(disabled, { command: "user disable", outcome: "failed", error: "not_found" });
    for (const { id, started_at, finished_at } of [disabled, suspended, created, migrated]) {
      t.regex(id, /^evt_/);
      t.true(started_at <= finished_at);
    }
    t.deepEqual(await log("--limit", "1", "--before", suspended.id), [created]);
    t.is((await run(["audit", "operator", "--limit", "0"])).error.code, "invalid_limit");
  },
);

test.serial("the operator's log holds no secret", async (t) => {
  const { organization } = await run(["org", "create", "Secretive", "--plan", "growth"]);
  const password = "a long enough password";
  const { url: reset } = (await run(["user", "create", "ada", "--org", organization.id], password)).user
    ? await run(["user", "reset-password", "ada"])
    : {};
  const { client_secret } = await run(["client", "rotate", organization.id]);
  const token = new URL(reset).pathname.split("/").at(-1) as string;
  await run(["client", "disable", client_secret]);
  await run(["link", "show", reset]);
  await run(["link", "disable", reset]);
  await run(["link", "disable", `https://go.example.com/spring?key=${token}`]);
  await run(["client", "redirect-uris", organization.id, `https://ada:${token}@a.example/callback`]);
  await run(["client", "add-key", organization.id, `{"kty":"EC","d":"${token}"}`]);
  await run(["app", "approve", organization.id, `https://a.example/?secret=${token}`]);
  await run(["org", "suspend", organization.id, "--reason", `leaked ${client_secret}`]);

  const database = openDatabase(url);
  const rows = await database.knex("events").where({ organization_id: "operator" });
  await database.close();
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
  for (let poll = 0; poll < 20 && (await log("--limit", "1"))[0].command !== "user create"; poll++)
    t.is(command.stderr, "");
  command.kill("SIGKILL");
  await command.ended;
  t.like((await log("--limit", "1"))[0], {
    arguments: ["grace"],
    outcome: null,
    finished_at: null,
    error: null,
  });
  t.true((await run(["audit", "verify"])).logs.every(({ ok }: { ok: boolean }) => ok));
});

test.serial("a log is verified with a head that was printed, as text or as JSON", async (t) => {
  const printed = await runCommand(["audit", "head", "operator"], { settings });
  t.is(printed.code, 0, printed.stderr);
  const { heads } = await run(["audit", "head", "operator"]);
  const [{ seq, hash, head }] = heads;
  t.deepEqual(heads, [{ organization_id: "operator", seq, hash, head: `operator:${seq}:${hash}` }]);
  t.is(printed.stdout, `${head}\n`);
  await run(["org", "create", "Later"]);
  const all = (await run(["audit", "head"])).heads.map((one: { head: string }) => one.head);
  t.true(
    (await run(["audit", "verify", "--head", head, ...all])).logs.every(({ ok }: { ok: boolean }) => ok),
  );

  const forged = head.replace(/.{8}$/, "00000000");
  const { code, stdout } = await runCommand(["audit", "verify", "operator", "--head", forged, "--json"], {
    settings,
  });
  t.is(code, 1);
  t.like(JSON.parse(stdout).logs, [{ organization_id: "operator", ok: false, broken: { seq } }]);
  for (const words of [
    ["--head", hash],
    ["org_other", "--head", head],
  ])
    t.is((await run(["audit", "verify", ...words])).error.code, "invalid_head");
  t.is((await run(["audit", "head", "org_other"])).error.code, "not_found");
});

test.serial(
  "concurrent commands each get one place in the chain, and a changed entry breaks it",
  async (t) => {
    const before = (await run(["audit", "verify", "operator"])).logs[0];
    await Promise.all(Array.from({ length: 8 }, (_, index) => run(["org", "create", `Parallel ${index}`])));
    const [after] = (await run(["audit", "verify", "operator"])).logs;
    t.like(after, { organization_id: "operator", ok: true, last_seq: before.last_seq + 16 });

    const database = openDatabase(url);
    const [row] = await database.knex("events").where({ organization_id: "operator", seq: 3 });
    await database
      .knex("events")
      .where({ id: row?.id as string })
      .update({ data: "{}" });
    await database.close();
    const { code, stdout } = await runCommand(["audit", "verify", "--json"], { settings });
    t.is(code, 1);
    const broken = JSON.parse(stdout).logs.filter(({ ok }: { ok: boolean }) => !ok);
    t.deepEqual(
      broken.map(({ organization_id }: { organization_id: string }) => organization_id),
      ["operator"],
    );
    t.is(broken[0].broken.seq, 3);
  },
);
