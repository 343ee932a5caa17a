import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { PRODUCTION } from "../harness/production.ts";
import {
  addressOf,
  type Ending,
  endingOf,
  Program,
  ROOT,
  runCommand,
  runShell,
  startServer,
  stopPrograms,
} from "../harness/program.ts";
import { skip } from "../harness/skip.ts";

export const stage = "processes";

const older = (await runShell("which -a node")).stdout
  .split("\n")
  .filter((file) => file && !file.includes("node_modules"));
const versions = await Promise.all(
  older.map(async (file) => ({
    file,
    version: (await new Program(file, ["--version"]).ended).stdout.trim(),
  })),
);
const tooOld = versions.find(({ version }) => /^v(19|2[01])\./.test(version));

const folders = mkdtempSync(path.join(tmpdir(), "linkgate-first-"));
test.after.always(stopPrograms);
test.after.always(() => rmSync(folders, { recursive: true, force: true }));

/** Returns an empty directory to start in. */
function emptyFolder(name: string): string {
  const folder = path.join(folders, name);
  mkdirSync(folder);
  return folder;
}

function permissionsOf(file: string): number {
  return statSync(file).mode & 0o777;
}

/** Starts a server and stops it. */
async function startOnce(cwd: string): Promise<Ending> {
  const server = startServer({ cwd, settings: { PORT: "0", LOG_LEVEL: "silent" } });
  await addressOf(server);
  return server.stop();
}

const DEMO = /client id {6}(\S+)\n {2}client secret {2}(\S+)\n {2}username {7}(\S+)\n {2}password {7}(\S+)\n/;

test("the first start prints credentials and four commands that work when pasted; the second prints none", async (t) => {
  const cwd = emptyFolder("demo");
  const server = startServer({ cwd, settings: { PORT: "0", LOG_LEVEL: "silent" } });
  const address = await addressOf(server);
  const [, clientId, clientSecret, username] = DEMO.exec(server.stdout) ?? [];
  t.regex(clientId ?? "", /^lgc_/);
  t.regex(clientSecret ?? "", /^lgs_/);
  t.is(username, "demo");
  t.is(server.stdout.match(/lgs_/g)?.length, 2, "the secret itself and in one command");
  t.is(server.stdout.match(/linkgate listening on/g)?.length, 1);
  for (const line of server.stdout.split("\n")) t.true(line.length <= 80, line);
  t.false(server.stdout.includes("\n\n\n"));
  t.true(server.stdout.includes(`\n  claude mcp add --transport http linkgate ${address}/mcp\n`));

  const [, page = ""] = /\n3\. .*\n\n([\s\S]*)\nlinkgate listening/.exec(server.stdout) ?? [];
  const [credentials = "", getToken = "", ...others] = page.trimEnd().split("\n\n");
  t.is(others.length, 3);
  const { code, stdout, stderr } = await runShell(page);
  t.is(stderr, "");
  t.is(code, 0);
  const [created, followed, revoked, ...rest] = stdout.split("\n");
  t.like(JSON.parse(created ?? ""), { slug: "hello", short_url: `${address}/hello` });
  t.is(followed, "302 https://example.com/hello");
  t.is(revoked, "200");
  t.deepEqual(rest, [""]);

  const withToken = `${credentials}\n${getToken}`;
  const clicked = await runShell(
    `${withToken}\ncurl -s "${address}/v1/links?search=hello" -H "Authorization: Bearer $TOKEN"`,
  );
  t.like(JSON.parse(clicked.stdout).data[0], { clicks: 1, bot_clicks: 0 });
  const list = await runShell(
    `${withToken}\n${others[2]}\ncurl -s -o /dev/null -w '%{http_code}' ${address}/v1/links -H "Authorization: Bearer $TOKEN"`,
  );
  t.is(list.stdout, "200\n401", "the token is revoked");
  const refused = await runShell(`CLIENT_ID=lgc_wrong\n${getToken}\necho "token: $TOKEN"`);
  t.regex(refused.stdout, /"error":"invalid_client"[\s\S]*\ntoken: \n$/);

  t.like(await server.stop(), { code: 0, stderr: "" });
  t.is(permissionsOf(path.join(cwd, "data")), 0o700);
  for (const file of readdirSync(path.join(cwd, "data"))) {
    t.is(permissionsOf(path.join(cwd, "data", file)), 0o600, file);
  }
  t.deepEqual(readdirSync(cwd), ["data"]);

  const second = startServer({ cwd, settings: { PORT: "0", LOG_LEVEL: "silent" } });
  const again = await addressOf(second);
  t.is((await second.stop()).stdout, `linkgate listening on ${again}\n`);
});

test("no demo organization is created in production or in a database with organizations", async (t) => {
  const production = startServer({
    cwd: emptyFolder("production"),
    settings: { ...PRODUCTION, PORT: "0", LOG_LEVEL: "warn" },
  });
  t.is((await addressOf(production)).startsWith("http://localhost:"), true);
  const { stdout } = await production.stop();
  t.notRegex(stdout, /secret|password/);

  const cwd = emptyFolder("own");
  await runCommand(["org", "create", "Own", "--json"], { cwd });
  const server = startServer({ cwd, settings: { PORT: "0", LOG_LEVEL: "silent" } });
  await addressOf(server);
  t.notRegex((await server.stop()).stdout, /secret|password/);
});

test("npm start runs the server, and SIGTERM to npm stops it", async (t) => {
  const cwd = emptyFolder("npm");
  for (const name of ["package.json", "server", "adapters", "resources", "certification", "node_modules"]) {
    symlinkSync(path.join(ROOT, name), path.join(cwd, name));
  }
  const npm = new Program("npm", ["start"], { cwd, settings: { PORT: "0", LOG_LEVEL: "silent" } });
  const address = await addressOf(npm);
  t.is((await fetch(`${address}/healthz`)).status, 200);
  npm.kill("SIGTERM");
  // The output stays open until every process that npm started has ended.
  const ended = await Promise.race([npm.ended, pause(60_000, undefined, { ref: false })]);
  npm.killGroup();
  t.truthy(ended, "the server outlived npm");
});

test("all invalid settings are reported at startup, and the exit code is 1", async (t) => {
  const cwd = emptyFolder("wrong");
  const settings = { PORT: "http", BASE_URL: "http://links.example.com", LOG_LEVEL: "loud" };
  const { code, stdout, stderr } = await endingOf(startServer({ cwd, settings }));
  t.is(code, 1);
  t.is(stdout, "");
  for (const name of Object.keys(settings)) t.regex(stderr, new RegExp(`^  ${name} must`, "m"));
  t.notRegex(stderr, /\bat .*\.ts:/, "no stack");
  t.deepEqual(readdirSync(cwd), [], "no file was created");
});

test("another ENCRYPTION_KEY on the same database is rejected with one sentence", async (t) => {
  const cwd = emptyFolder("key");
  const settings = { PORT: "0", LOG_LEVEL: "silent" };
  await startOnce(cwd);
  const other = { ...settings, ENCRYPTION_KEY: Buffer.alloc(32, 9).toString("base64url") };
  const { code, stdout, stderr } = await endingOf(startServer({ cwd, settings: other }));
  t.is(code, 1);
  t.is(stdout, "");
  t.is(stderr, "ENCRYPTION_KEY is not the key that this database was created with\n");

  const doctor = await runCommand(["doctor", "--json"], { cwd, settings: other });
  t.is(doctor.code, 1);
  const { checks } = JSON.parse(doctor.stdout);
  t.deepEqual(
    checks.filter(({ ok }: { ok: boolean }) => !ok).map(({ name }: { name: string }) => name),
    ["keys"],
  );

  const same = readFileSync(path.join(cwd, "data/encryption.key"), "utf8").trim();
  const third = startServer({ cwd, settings: { ...settings, ENCRYPTION_KEY: same } });
  await addressOf(third);
  t.is((await third.stop()).code, 0);
});

test("a key file without a key is rejected with one sentence", async (t) => {
  const cwd = emptyFolder("broken-key");
  await startOnce(cwd);
  const made = await runShell("printf broken > data/encryption.key", { cwd });
  t.is(made.code, 0);
  const { code, stderr } = await endingOf(startServer({ cwd, settings: { PORT: "0" } }));
  t.is(code, 1);
  t.regex(stderr, /encryption\.key must contain 32 bytes in base64url\n$/);
  t.notRegex(stderr, /\bat .*\.ts:/, "no stack");
});

test("a key file that other users can read is rejected with the command that fixes it", async (t) => {
  const cwd = emptyFolder("readable-key");
  await startOnce(cwd);
  await runShell("chmod 644 data/encryption.key", { cwd });
  const { code, stderr } = await endingOf(startServer({ cwd, settings: { PORT: "0" } }));
  t.is(code, 1);
  const [, mend = ""] =
    /encryption\.key must not be accessible to other users: run (.*)\n$/.exec(stderr) ?? [];
  t.regex(mend, /^chmod 600 /);
  await runShell(mend, { cwd });
  t.is((await startOnce(cwd)).code, 0);
});

for (const WORKERS of ["1", "2"])
  test(`a first start on a port in use, with WORKERS=${WORKERS}, leaves the credentials to the next one`, async (t) => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    t.teardown(() => other.close());
    const { port } = other.address() as AddressInfo;
    const cwd = emptyFolder(`port-${WORKERS}`);
    const settings = { WORKERS, LOG_LEVEL: "silent" };
    const refused = await endingOf(startServer({ cwd, settings: { ...settings, PORT: String(port) } }));
    t.regex(refused.stderr, /is in use/);
    const server = startServer({ cwd, settings: { ...settings, PORT: "0" } });
    await addressOf(server);
    t.regex(server.stdout, DEMO);
    await server.stop();
  });

test("a port in use is reported in one sentence with a way out", async (t) => {
  const cwd = emptyFolder("port");
  const first = startServer({ cwd, settings: { PORT: "0", LOG_LEVEL: "silent" } });
  const { port } = new URL(await addressOf(first));
  const { code, stderr } = await endingOf(
    startServer({ cwd, settings: { PORT: port, LOG_LEVEL: "silent" } }),
  );
  t.is(code, 1);
  t.is(stderr, `Port ${port} is in use. Set another PORT, such as PORT=4000\n`);
  const metrics = { PORT: "0", METRICS_PORT: port, LOG_LEVEL: "silent" };
  const second = await endingOf(startServer({ cwd, settings: metrics }));
  t.is(second.code, 1);
  t.is(second.stderr, `Port ${port} is in use. Choose another METRICS_PORT\n`);
  await first.stop();
});

const UNUSABLE: [name: string, settings: Record<string, string>, sentence: string][] = [
  ["a host that cannot be resolved", { HOST: "nope.invalid" }, "HOST nope.invalid cannot be resolved.\n"],
  [
    "a PostgreSQL server that is not running",
    { DATABASE_URL: "postgres://ada:secret@127.0.0.1:1/links" },
    "DATABASE_URL: cannot connect to postgres://ada@127.0.0.1:1/links (connection refused). Check the host and port, and that the server is running.\n",
  ],
  [
    "a MariaDB server that is not running",
    { DATABASE_URL: "mysql://ada:secret@127.0.0.1:1/links" },
    "DATABASE_URL: cannot connect to mysql://ada@127.0.0.1:1/links (connection refused). Check the host and port, and that the server is running.\n",
  ],
];
for (const [name, settings, sentence] of UNUSABLE) {
  test(`${name} is reported in one sentence, without a stack or a password`, async (t) => {
    const cwd = emptyFolder(name.replaceAll(" ", "-"));
    const options = { cwd, settings: { PORT: "0", LOG_LEVEL: "silent", ...settings } };
    const { code, stdout, stderr } = await endingOf(startServer(options));
    t.is(code, 1);
    t.is(stdout, "");
    t.is(stderr, sentence);
  });
}

test("the command reports an unreachable database as an error with a code", async (t) => {
  const cwd = emptyFolder("unreachable");
  const settings = { DATABASE_URL: "postgres://ada:secret@127.0.0.1:1/links" };
  const { code, stderr } = await runCommand(["org", "list", "--json"], { cwd, settings });
  t.is(code, 1);
  t.like(JSON.parse(stderr).error, {
    code: "failed",
    message:
      "DATABASE_URL: cannot connect to postgres://ada@127.0.0.1:1/links (connection refused). Check the host and port, and that the server is running.",
  });
});

test("two processes that start concurrently on an empty database both come up and share the keys", async (t) => {
  for (const round of [1, 2, 3]) {
    const cwd = emptyFolder(`two-${round}`);
    const settings = { PORT: "0", LOG_LEVEL: "silent" };
    const servers = [startServer({ cwd, settings }), startServer({ cwd, settings })];
    const addresses = await Promise.all(servers.map(addressOf));
    const keys = await Promise.all(
      addresses.map(async (address) => (await fetch(`${address}/oauth/jwks`)).text()),
    );
    t.regex(keys[0] ?? "", /"kid"/);
    t.is(keys[0], keys[1]);
    const endings = await Promise.all(servers.map((server) => server.stop()));
    t.deepEqual(
      endings.map(({ code }) => code),
      [0, 0],
    );
    t.is(
      endings.filter(({ stdout }) => DEMO.test(stdout)).length,
      1,
      "one of them created the demo organization",
    );
    const { stdout } = await runCommand(["org", "list", "--json"], { cwd });
    t.is(JSON.parse(stdout).organizations.length, 1);
  }
});

const refusalTitle = "an older Node is rejected with one sentence";
if (!tooOld) skip(refusalTitle, "PATH has no older Node");
else
  test(refusalTitle, async (t) => {
    const { file, version } = tooOld;
    const { code, stdout, stderr } = await endingOf(startServer({ cwd: emptyFolder("older"), node: file }));
    t.is(code, 1);
    t.is(stdout, "");
    t.is(stderr, `linkgate needs Node 22.18 or newer; this is Node ${version.slice(1)}.\n`);
  });
