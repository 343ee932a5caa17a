import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, statSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import test from "ava";
import manifest from "../../package.json" with { type: "json" };
import { blocksOf } from "../harness/examples.ts";
import { Program, ROOT, temporaryFolder } from "../harness/program.ts";
import { filesOfRepository, outputOf, packProduct } from "../harness/release/package.ts";
import { skip } from "../harness/skip.ts";

const MB = 1024 * 1024;
const BREACHED = "dist/server/credentials/breached-passwords/passwords.bloom";
const MAX_PACKAGES = 170;

type Tree = Record<string, { version?: string; extraneous?: true; dependencies?: Tree }>;

const folder = temporaryFolder("package");
const emptyFolder = (name: string) => {
  const empty = path.join(folder, name);
  mkdirSync(empty);
  return empty;
};
const tarball = await packProduct(emptyFolder("first"));
await outputOf("tar", ["xzf", tarball, "-C", emptyFolder("unpacked")]);
const listed = (await outputOf("tar", ["tzf", tarball]))
  .trimEnd()
  .split("\n")
  .map((file) => file.replace("package/", ""));

function builtFrom(file: string): string[] {
  const isPart = /^(server|adapters|resources|certification\/src|docs)\/|^(SECURITY\.md|package\.json)$/;
  const isLeftOut = /\.d\.ts$|^docs\/images\/|^(?!docs\/).*README\.md$/;
  if (!isPart.test(file) || isLeftOut.test(file)) return [];
  const compiled = file.replace(/\.ts$/, ".js");
  return compiled === file ? [`dist/${file}`] : [`dist/${compiled}`, `dist/${compiled}.map`];
}

test("the package has what is built from the sources, and nothing else", (t) => {
  const own = ["CHANGELOG.md", "LICENSE", "README.md", "package.json", "server/cli/linkgate.js"];
  const packed = ["dist/client/client.tgz"];
  const expected = new Set([...filesOfRepository().flatMap(builtFrom), ...own, ...packed]);
  t.deepEqual([...expected.difference(new Set(listed))], [], "missing");
  t.deepEqual([...new Set(listed).difference(expected)], [], "not expected");
});

test("npm warns of no script when the package is installed", async (t) => {
  const { scripts } = JSON.parse(await outputOf("tar", ["-xOf", tarball, "package/package.json"]));
  for (const name of ["preinstall", "install", "postinstall", "prepare"]) t.false(name in scripts, name);
});

test("the tarball is smaller than 3 MB without the list of breached passwords", (t) => {
  const list = statSync(path.join(folder, "unpacked/package", BREACHED)).size;
  t.true(statSync(tarball).size - list < 3 * MB, `${statSync(tarball).size}`);
});

test("an installation has at most 170 packages", async (t) => {
  // In the versions of the lock file: newer ones may bring others.
  const output = await outputOf("npm", ["ls", "--omit=dev", "--all", "--json"]);
  const packages = new Set<string>();
  const add = (dependencies: Tree = {}) => {
    for (const [name, { version, dependencies: own, extraneous }] of Object.entries(dependencies)) {
      if (version && !extraneous) packages.add(`${name}@${version}`);
      add(own);
    }
  };
  add(JSON.parse(output).dependencies);
  t.true(packages.size > 100);
  t.true(packages.size < MAX_PACKAGES, `${packages.size} and linkgate`);
});

// The walk needs the credentials that the first start prints.
const WALK = blocksOf("README.md")
  .filter(({ heading }) => heading === "A walk of six commands")
  .map(({ code }) => code)
  .slice(1)
  .join("\n");
const START = `
node_modules/.bin/linkgate >out.txt 2>err.txt &
server=$!
for _ in $(seq 300); do
  if grep -q "^linkgate listening on" out.txt; then break; fi
  kill -0 $server
  sleep 0.1
done
CLIENT_ID=$(sed -n 's/^ *client id *//p' out.txt) CLIENT_SECRET=$(sed -n 's/^ *client secret *//p' out.txt)
`;
const STOP = `
cat err.txt >&2
kill $server
wait $server
`;

const CAN_ISOLATE = spawnSync("unshare", ["--mount", "--net", "true"]).status === 0;

/** A machine that has Node and npm, and neither the repository nor, unless it is online, a network. */
type Machine = { folder: string; run(script: string, isOnline?: boolean): Program };

/** @param node the file of the Node that the machine has */
function createMachine(folder: string, node: string): Machine {
  const bin = path.join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  cpSync(node, path.join(bin, "node"));
  for (const name of ["npm", "npx"]) symlinkSync(fileOf(name), path.join(bin, name));
  const { NODE_EXTRA_CA_CERTS = "" } = process.env;
  const settings = {
    HOME: folder,
    PATH: `${bin}:/usr/bin:/bin`,
    // How this machine reaches its registry.
    NODE_EXTRA_CA_CERTS,
    npm_config_userconfig: path.join(homedir(), ".npmrc"),
    npm_config_cache: path.join(folder, "cache"),
    // By default, npm waits five minutes for a response that has stalled.
    npm_config_fetch_timeout: "20000",
    npm_config_fetch_retry_mintimeout: "1000",
  };
  return {
    folder,
    run(script, isOnline = false) {
      const loopback = isOnline ? "" : "/usr/sbin/ip link set lo up\n";
      const prepare = `mount -t tmpfs tmpfs '${ROOT}'\n${loopback}cd '${folder}'\n`;
      const spaces = isOnline ? ["--mount"] : ["--mount", "--net"];
      return new Program("unshare", [...spaces, "sh", "-euc", prepare + script], { settings, cwd: "/" });
    },
  };
}

function fileOf(program: string): string {
  const { stdout } = spawnSync("sh", ["-c", `readlink -f "$(command -v ${program})"`], { encoding: "utf8" });
  return stdout.trim();
}

async function install(machine: Machine): Promise<string> {
  await outputOf("cp", [tarball, machine.folder]);
  const { code, stdout, stderr } = await machine.run("npm install ./linkgate-*.tgz", true).ended;
  if (code !== 0) throw new Error(stdout + stderr);
  return stderr;
}

const nodes = { 24: process.execPath, 22: process.env.TEST_NODE_22 };
for (const [version, node] of Object.entries(nodes)) {
  const title = `a machine with Node ${version} and npm installs the package and walks through the API offline`;
  if (!node) skip(title, "TEST_NODE_22 is not set");
  else if (!CAN_ISOLATE) skip(title, "namespaces can't be created");
  else
    test.serial(title, async (t) => {
      const machine = createMachine(path.join(folder, `node-${version}`), node);
      const started = performance.now();
      t.notRegex(await install(machine), /EBADENGINE|deprecated/);
      const installed = performance.now();
      const { stdout, stderr } = await machine.run(`${START}(set +e\n${WALK})\n${STOP}`).ended;
      t.regex(stdout, /"slug":"spring"/, stderr);
      t.regex(stdout, /^302 https:\/\/example\.com\/spring$/m);
      t.regex(stdout, /"name":"demo"|\\"name\\":\\"demo\\"/);
      t.regex(stdout, /^200$/m);
      const seconds = [installed, performance.now()].map((time) => ((time - started) / 1000).toFixed(1));
      t.log(`installed after ${seconds[0]} s, the walk after ${seconds[1]} s`);

      const bytes = Number((await outputOf("du", ["-sb", `${machine.folder}/node_modules`])).split("\t")[0]);
      t.true(bytes < 100 * MB, `${bytes} bytes`);
    });
}

test.serial("a server without optional packages names those that its settings need", async (t) => {
  // prom-client depends on the API.
  const optional = Object.keys(manifest.peerDependencies);
  const telemetry = optional.filter((name) => /^@opentelemetry\/(?!api$)/.test(name)).join(" ");
  const missing = { DATABASE_URL: "pg", REDIS_URL: "ioredis", OTEL_TRACES_EXPORTER: telemetry };
  const settings = {
    ...{ DATABASE_URL: "postgres://localhost/linkgate", REDIS_URL: "redis://localhost" },
    OTEL_TRACES_EXPORTER: "otlp",
  };
  const installed = path.join(folder, "node-24/node_modules/.bin/linkgate");
  const { code, stderr } = await new Program(process.execPath, [installed], { cwd: folder, settings }).ended;
  const lines = Object.entries(missing).map(
    ([name, packages]) => `  ${name} needs packages that aren't installed. Run: npm install ${packages}\n`,
  );
  t.is(code, 1);
  t.is(stderr, `Invalid settings:\n${lines.join("")}`);
});
