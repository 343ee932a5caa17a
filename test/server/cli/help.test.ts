import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import manifest from "../../../package.json" with { type: "json" };
import { NAME_MAX } from "../../../server/credentials/names.ts";
import { Program, ROOT, runCommand, runShell, stopPrograms } from "../../harness/program.ts";
import { skip } from "../../harness/skip.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-help-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
const nodes = (await runShell("which -a node")).stdout.split("\n").filter(Boolean);
const versions = await Promise.all(
  nodes.map(async (file) => ({ file, version: (await new Program(file, ["--version"]).ended).stdout })),
);
const older = versions.find(({ version }) => /^v(19|2[01])\./.test(version));

test.before(async () => {
  await runCommand(["migrate"], { settings });
});
test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

const COMMANDS = [
  "migrate",
  "sweep",
  "doctor",
  "org create",
  "org plan",
  "org list",
  "org show",
  "org require-dpop",
  "org fapi",
  "org enterprise-authorization",
  "org member-apps",
  "app list",
  "app approve",
  "app withdraw",
  "client rotate",
  "client redirect-uris",
  "trust list",
  "trust add",
  "trust remove",
  "user create",
  "user reset-password",
  "audit operator",
  "audit verify",
  "audit head",
  "mcp server-json",
  "listen",
  "conformance",
  "completion",
];

function fitsOnTerminal(t: ExecutionContext, text: string): void {
  t.deepEqual(
    text.split("\n").filter((line) => line.length > 80),
    [],
  );
}

for (const words of [["--help"], ["-h"], ["help"], ["--help", "--json"]]) {
  test(`"linkgate ${words.join(" ")}" lists every command on stdout`, async (t) => {
    const { code, stdout, stderr } = await runCommand(words, { settings });
    t.is(code, 0);
    t.is(stderr, "");
    for (const command of COMMANDS) t.regex(stdout, new RegExp(`^ {2}${command}\\b`, "m"), command);
    fitsOnTerminal(t, stdout);
  });
}

test("the help states the longest name of an organization", async (t) => {
  const { stdout } = await runCommand(["org", "create", "--help"], { settings });
  t.true(stdout.includes(` 1 to ${NAME_MAX} characters\n`));
});

for (const command of COMMANDS) {
  test(`"linkgate ${command} --help" shows the description, the options and an example`, async (t) => {
    const { code, stdout, stderr } = await runCommand([...command.split(" "), "--help"], { settings });
    t.is(code, 0);
    t.is(stderr, "");
    t.regex(stdout, new RegExp(`^Usage: linkgate ${command} `));
    t.regex(stdout, /^[A-Z].+$/m);
    t.regex(stdout, /^ {2}--json +\S/m);
    t.regex(stdout, new RegExp(`^Example:\\n {2}npx linkgate ${command}`, "m"));
  });
}

for (const [group, commands] of Object.entries({
  org: ["create", "plan", "list", "show"],
  app: ["list", "approve", "withdraw"],
  client: ["rotate", "redirect-uris"],
  trust: ["list", "add", "remove"],
  user: ["create", "reset-password"],
  mcp: ["server-json"],
})) {
  test(`"linkgate ${group} --help" lists the commands of the group`, async (t) => {
    const { code, stdout } = await runCommand([group, "--help"], { settings });
    t.is(code, 0);
    for (const name of commands) t.regex(stdout, new RegExp(`^ {2}${group} ${name}\\b`, "m"), name);
    fitsOnTerminal(t, stdout);
  });
}

test("--version prints the version of the package", async (t) => {
  const { code, stdout, stderr } = await runCommand(["--version"], { settings });
  t.deepEqual({ code, stdout, stderr }, { code: 0, stdout: `${manifest.version}\n`, stderr: "" });
});

test("help needs no valid settings", async (t) => {
  const { code, stderr } = await runCommand(["org", "create", "--help"], { settings: { PORT: "abc" } });
  t.is(code, 0);
  t.is(stderr, "");
});

test("help loads no database and no package but that of the schemas, so it appears quickly", async (t) => {
  const report = `import { registerHooks } from "node:module";
    registerHooks({ load: (url, context, next) => { console.error(url); return next(url, context); } });`;
  const hook = `data:text/javascript,${encodeURIComponent(report)}`;
  const args = ["--import", hook, `${ROOT}server/cli/linkgate.js`, "--help"];
  const { code, stderr } = await new Program(process.execPath, args, { settings }).ended;
  t.is(code, 0);
  const loaded = stderr.split("\n").filter((line) => line.startsWith("file:"));
  t.true(loaded.some((url) => url.endsWith("/server/cli/commands/index.ts")));
  t.deepEqual(
    loaded.filter((url) => /node_modules\/(?!commander|ulid|zod)|adapters\/(database|copy|index)/.test(url)),
    [],
  );
});

const SENTENCES: [words: string[], stderr: RegExp][] = [
  [["bogus"], /^Unknown command "bogus"\.\nRun "linkgate --help" for a list of commands\.\n$/],
  [["org", "bogus"], /^Unknown command "org bogus"\.\nRun "linkgate org --help" for a list of commands\.\n$/],
  [["help", "bogus"], /^Unknown command "bogus"\.\nRun "linkgate --help" for a list of commands\.\n$/],
  [["improt"], /^Unknown command "improt"\. Did you mean import\?\nRun /],
  [["ogr", "list"], /^Unknown command "ogr"\. Did you mean org\?\nRun /],
  [["org", "lst"], /^Unknown command "org lst"\. Did you mean list\?\nRun "linkgate org --help" /],
  [["org"], /^Missing command\.\nRun "linkgate org --help" for a list of commands\.\n$/],
  [
    ["org", "create"],
    /^Missing required argument "name"\.\nUsage: linkgate org create <name> \[options\]\n$/,
  ],
  [["org", "create", "A", "--limit", "9"], /^Unknown option "--limit"\.\nUsage: linkgate org create /],
  [["org", "create", "A", "--pln", "growth"], /^Unknown option "--pln"\. Did you mean --plan\?\nUsage: /],
  [["--plan"], /^Unknown option "--plan"\.\nUsage: linkgate <command> \[options\]\n$/],
  [["migrate", "now"], /^Unexpected argument "now"\.\nUsage: linkgate migrate \[options\]\n$/],
];

for (const [words, expected] of SENTENCES) {
  test(`"linkgate ${words.join(" ")}" says on stderr what is wrong and what to do`, async (t) => {
    const { code, stdout, stderr } = await runCommand(words, { settings });
    t.is(code, 1);
    t.is(stdout, "");
    t.regex(stderr, expected);
  });
}

test("npx linkgate runs the command inside the checkout", async (t) => {
  const { code, stdout } = await runShell(`npx linkgate org list --json`, { settings, cwd: ROOT });
  t.is(code, 0);
  t.deepEqual(JSON.parse(stdout), { organizations: [] });
});

const rerunTitle = "an older Node runs the command on the Node of the packages";
if (!older) skip(rerunTitle, "PATH has no older Node");
else
  test(rerunTitle, async (t) => {
    const launcher = `${ROOT}server/cli/linkgate.js`;
    const listed = await new Program(older.file, [launcher, "org", "list", "--json"], { settings }).ended;
    t.is(listed.code, 0, listed.stderr);
    t.deepEqual(JSON.parse(listed.stdout), { organizations: [] });
    const refused = await new Program(older.file, [launcher, "org", "show", "org_none"], { settings }).ended;
    t.is(refused.code, 1);
    t.is(refused.stderr, "Organization org_none not found.\n");
  });
