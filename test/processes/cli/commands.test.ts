import test from "ava";
import { MIGRATIONS } from "../../../adapters/database/migrations/index.ts";
import manifest from "../../../package.json" with { type: "json" };
import {
  findOlderNode,
  Program,
  ROOT,
  refusalOf,
  resultOf,
  runCommand,
  runShell,
  temporaryFolder,
} from "../../harness/program.ts";
import { skip } from "../../harness/skip.ts";

const folder = temporaryFolder("cli");
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
const older = await findOlderNode();

type Organizations = { organizations: { id: string; name: string; plan: string }[] };
const list = () => resultOf<Organizations>(["org", "list"], { settings });
const create = (...words: string[]) =>
  resultOf<{ organization: { id: string } }>(["org", "create", ...words], { settings });

test.serial("migrate lists the migrations it applied, and none the second time", async (t) => {
  const applied = MIGRATIONS.map(({ name }) => name);
  t.deepEqual(await resultOf(["migrate"], { settings }), { applied });
  t.deepEqual(await resultOf(["migrate"], { settings }), { applied: [] });
  t.is((await runCommand(["migrate"], { settings })).stdout, "applied: none\n", "as text");
});

test.serial("--json prints one document, or an error with its code on stderr", async (t) => {
  t.deepEqual(await list(), { organizations: [] });
  t.is((await refusalOf(["nonsense"], { settings })).code, "unknown_command");
  const unknown = { code: "not_found", message: "Organization org_none not found." };
  t.deepEqual(await refusalOf(["org", "show", "org_none"], { settings }), unknown);
  const wrong = { settings: { PORT: "abc", LOG_LEVEL: "loud" } };
  const { code, message } = await refusalOf(["org", "list"], wrong);
  t.is(code, "wrong_settings");
  t.regex(message, /PORT .*\n.*LOG_LEVEL /, "all of them");
});

test.serial("without --json, a result is lines, a list is a table, and an error is a sentence", async (t) => {
  const made = await runCommand(["org", "create", "Lines", "--plan", "growth"], { settings });
  t.is(made.code, 0);
  t.regex(
    made.stdout,
    /^organization:\n {2}id: org_\w{26}\n {2}name: Lines\n {2}plan: growth\nclient:\n {2}client_id: lgc_/,
  );
  await create("A longer name");
  const { organizations } = await list();
  const { stdout } = await runCommand(["org", "list"], { settings });
  const [name, head = "", ...lines] = stdout.trimEnd().split("\n");
  t.is(name, "organizations:");
  t.regex(head, /^ {2}id +name +plan$/);
  t.is(lines.length, organizations.length);
  for (const [index, { id, plan }] of organizations.entries()) {
    t.true(lines[index]?.startsWith(`  ${id}  `));
    t.is(lines[index]?.slice(head.indexOf("plan")), plan);
  }
  const refused = await runCommand(["org", "show", "org_none"], { settings });
  const stderr = "Organization org_none not found.\n";
  t.deepEqual(refused, { code: 1, signal: null, stdout: "", stderr });
});

test.serial("user create reads the password from stdin, and never prints it", async (t) => {
  const { organization } = await create("People");
  const words = ["user", "create", "ada", "--org", organization.id];
  const short = await refusalOf(words, { settings }, "seven77\n");
  t.is(short.code, "invalid_password");
  t.false(short.message.includes("seven77"));
  const options = [...words, "--json"];
  const { code, stdout, stderr } = await runCommand(options, { settings }, "a password for people\n");
  t.deepEqual([code, stderr], [0, ""]);
  t.like(JSON.parse(stdout), { user: { username: "ada" } });
  t.false(stdout.includes("password"));
});

test.serial("npm run --silent and npx print the same document and return the exit code", async (t) => {
  for (const program of [`npm run --silent --prefix "${ROOT}" linkgate --`, `npx linkgate`]) {
    const works = await runShell(`${program} org list --json`, { settings, cwd: ROOT });
    t.is(works.code, 0);
    t.deepEqual(JSON.parse(works.stdout), await list());
    const fails = `${program} org show org_none --json`;
    t.like(await runShell(fails, { settings, cwd: ROOT }), { code: 1, stdout: "" });
  }
});

test("a document for another program is JSON without --json, too", async (t) => {
  const options = { settings: { ...settings, BASE_URL: "https://example.com" } };
  const plain = await runCommand(["mcp", "server-json"], options);
  t.deepEqual(await resultOf(["mcp", "server-json"], options), JSON.parse(plain.stdout));
});

test("the version and help need no valid settings", async (t) => {
  const wrong = { settings: { PORT: "abc" } };
  const version = { code: 0, signal: null, stdout: `${manifest.version}\n`, stderr: "" };
  t.deepEqual(await runCommand(["--version"], wrong), version);
  const { code, stdout, stderr } = await runCommand(["org", "create", "--help"], wrong);
  t.deepEqual([code, stderr], [0, ""]);
  t.regex(stdout, /^Usage: linkgate org create /);
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
  for (const url of loaded)
    t.notRegex(url, /node_modules\/(?!commander|ulid|zod)|adapters\/(database|copy|index)/);
});

const rerunTitle = "an older Node runs the command on the Node of the packages";
if (!older) skip(rerunTitle, "PATH has no older Node");
else
  test(rerunTitle, async (t) => {
    const launcher = `${ROOT}server/cli/linkgate.js`;
    const run = (...words: string[]) => new Program(older.file, [launcher, ...words], { settings }).ended;
    t.like(await run("--version"), { code: 0, stdout: `${manifest.version}\n` });
    t.like(await run("org", "show", "org_none"), { code: 1, stderr: "Organization org_none not found.\n" });
  });
