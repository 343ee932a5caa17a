import { mkdirSync, readdirSync, statSync, symlinkSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { startApp } from "../harness/clients/app-server.ts";
import { PRODUCTION } from "../harness/production.ts";
import {
  addressOf,
  endingOf,
  findOlderNode,
  Program,
  ROOT,
  runCommand,
  runShell,
  startServer,
  temporaryFolder,
} from "../harness/program.ts";
import { skip } from "../harness/skip.ts";

const tooOld = await findOlderNode();
const folders = temporaryFolder("first");

function emptyFolder(name: string): string {
  const folder = path.join(folders, name);
  mkdirSync(folder);
  return folder;
}

const permissionsOf = (file: string): number => statSync(file).mode & 0o777;

const QUIET = { PORT: "0", LOG_LEVEL: "silent" };

async function startIn(cwd: string, settings: Record<string, string> = QUIET) {
  const server = startServer({ cwd, settings });
  return { server, address: await addressOf(server) };
}

const DEMO = /client id {6}(\S+)\n {2}client secret {2}(\S+)\n {2}username {7}(\S+)\n {2}password {7}(\S+)\n/;

test("the first start prints credentials and four commands that work when pasted; the second prints none", async (t) => {
  const cwd = emptyFolder("demo");
  const { server, address } = await startIn(cwd);
  t.regex(server.stdout, /client id {6}lgc_\S+\n {2}client secret {2}lgs_\S+\n {2}username {7}demo\n/);
  t.is(server.stdout.match(/lgs_/g)?.length, 2, "the secret itself and in one command");
  t.is(server.stdout.match(/linkgate listening on/g)?.length, 1);
  for (const line of server.stdout.split("\n")) t.true(line.length <= 80, line);
  t.false(server.stdout.includes("\n\n\n"));
  t.true(server.stdout.includes(`\n  claude mcp add --transport http linkgate ${address}/mcp\n`));

  const [, page = ""] = /\n3\. .*\n\n([\s\S]*)\nlinkgate listening/.exec(server.stdout) ?? [];
  const [credentials = "", getToken = "", ...others] = page.trimEnd().split("\n\n");
  t.is(others.length, 3);
  const pasted = await runShell(page);
  t.like(pasted, { code: 0, stderr: "" });
  const [created, followed, revoked, ...rest] = pasted.stdout.split("\n");
  t.like(JSON.parse(created ?? ""), { slug: "hello", short_url: `${address}/hello` });
  t.is(followed, "302 https://example.com/hello");
  t.is(revoked, "200");
  t.deepEqual(rest, [""]);

  const paste = async (script: string) => (await runShell(`${credentials}\n${getToken}\n${script}`)).stdout;
  const list = `-H "Authorization: Bearer $TOKEN" "${address}/v1/links?search=hello"`;
  t.like(JSON.parse(await paste(`curl -s ${list}`)).data[0], { clicks: 1, bot_clicks: 0 });
  const revokeAndList = `${others[2]}\ncurl -s -o /dev/null -w '%{http_code}' ${list}`;
  t.is(await paste(revokeAndList), "200\n401", "the token is revoked");
  const refused = await runShell(`CLIENT_ID=lgc_wrong\n${getToken}\necho "token: $TOKEN"`);
  t.regex(refused.stdout, /"error":"invalid_client"[\s\S]*\ntoken: \n$/);

  t.like(await server.stop(), { code: 0, stderr: "" });
  t.is(permissionsOf(path.join(cwd, "data")), 0o700);
  for (const file of readdirSync(path.join(cwd, "data")))
    t.is(permissionsOf(path.join(cwd, "data", file)), 0o600, file);
  t.deepEqual(readdirSync(cwd), ["data"]);

  const second = await startIn(cwd);
  t.is((await second.server.stop()).stdout, `linkgate listening on ${second.address}\n`);
});

test("no demo organization is created in production or in a database with organizations", async (t) => {
  const production = { ...PRODUCTION, PORT: "0", LOG_LEVEL: "warn" };
  const { server, address } = await startIn(emptyFolder("production"), production);
  t.true(address.startsWith("http://localhost:"));
  t.notRegex((await server.stop()).stdout, /secret|password/);

  const cwd = emptyFolder("own");
  await runCommand(["org", "create", "Own", "--json"], { cwd });
  const own = await startIn(cwd);
  t.notRegex((await own.server.stop()).stdout, /secret|password/);
});

test("npm start runs the server, and SIGTERM to npm stops it", async (t) => {
  const cwd = emptyFolder("npm");
  for (const name of ["package.json", "server", "adapters", "resources", "certification", "node_modules"])
    symlinkSync(path.join(ROOT, name), path.join(cwd, name));
  const npm = new Program("npm", ["start"], { cwd, settings: QUIET });
  const address = await addressOf(npm);
  t.is((await fetch(`${address}/healthz`)).status, 200);
  npm.kill("SIGTERM");
  // The output stays open until every process that npm started has ended.
  const ended = await Promise.race([npm.ended, pause(60_000, undefined, { ref: false })]);
  npm.killGroup();
  t.truthy(ended, "the server outlived npm");
});

for (const WORKERS of ["1", "2"])
  test(`a first start on a port in use, with WORKERS=${WORKERS}, leaves the credentials to the next one`, async (t) => {
    const { port, close } = await startApp(() => {});
    t.teardown(close);
    const cwd = emptyFolder(`port-${WORKERS}`);
    const settings = { WORKERS, LOG_LEVEL: "silent" };
    const refused = await endingOf(startServer({ cwd, settings: { ...settings, PORT: String(port) } }));
    t.regex(refused.stderr, /is in use/);
    const { server } = await startIn(cwd, { ...settings, PORT: "0" });
    t.regex(server.stdout, DEMO);
    await server.stop();
  });

test("two processes that start concurrently on an empty database both come up and share the keys", async (t) => {
  const cwd = emptyFolder("two");
  const started = await Promise.all([startIn(cwd), startIn(cwd)]);
  const keys = await Promise.all(
    started.map(async ({ address }) => (await fetch(`${address}/oauth/jwks`)).text()),
  );
  t.regex(keys[0] ?? "", /"kid"/);
  t.is(keys[0], keys[1]);
  const endings = await Promise.all(started.map(({ server }) => server.stop()));
  t.true(endings.every(({ code }) => code === 0));
  t.is(endings.filter(({ stdout }) => DEMO.test(stdout)).length, 1, "one created the demo organization");
  const { stdout } = await runCommand(["org", "list", "--json"], { cwd });
  t.is(JSON.parse(stdout).organizations.length, 1);
});

const refusalTitle = "an older Node is rejected with one sentence";
if (!tooOld) skip(refusalTitle, "PATH has no older Node");
else
  test(refusalTitle, async (t) => {
    const { file, version } = tooOld;
    const stderr = `linkgate needs Node 22.18 or newer; this is Node ${version.slice(1)}.\n`;
    const refused = await endingOf(startServer({ cwd: emptyFolder("older"), node: file }));
    t.deepEqual(refused, { code: 1, signal: null, stdout: "", stderr });
  });
