import { existsSync, readFileSync } from "node:fs";
import { glob } from "node:fs/promises";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import { scopesOfRole } from "../../resources/access/scopes.ts";
import type { AnalyticsView } from "../../resources/links/analytics.ts";
import { HOSTS, stepsOf } from "../../server/dashboard/connect/guides.ts";
import { apiAt } from "../harness/clients/api.ts";
import { blocksOf } from "../harness/examples.ts";
import { addressOf, ROOT, runShell, startServer, temporaryFolder } from "../harness/program.ts";
import { startTestService, type TestOrganization } from "../harness/service.ts";
import { until } from "../harness/webhooks.ts";

const service = await startTestService();
const documents = await Array.fromAsync(
  glob("{*.md,client/*.md,docs/**/*.md,{server,adapters,resources,test}/**/README.md}", {
    cwd: ROOT,
    exclude: ["**/node_modules"], // the benchmark's references have their own
  }),
);

const REQUIREMENTS = 148;
const folder = new URL("../", import.meta.url).pathname;
const readme = readFileSync(`${folder}README.md`, "utf8");
const files = await Array.fromAsync(glob("**/*.test.ts", { cwd: folder }));

const read = (document: string) => readFileSync(path.join(ROOT, document), "utf8");

const walkOf = ({ clientId, clientSecret }: TestOrganization) =>
  blocksOf("README.md")
    .filter(({ heading }) => heading === "A walk of six commands")
    .map(({ code }) => code.replaceAll("http://localhost:3000", service.url))
    .map((code) => code.replace("CLIENT_ID=lgc_…", `CLIENT_ID=${clientId}`))
    .map((code) => code.replace("CLIENT_SECRET=lgs_…", `CLIENT_SECRET=${clientSecret}`));

test("the walk through the API in the README works when pasted", async (t) => {
  const organization = await service.createOrganization();
  const commands = walkOf(organization);
  const next = `api ${service.url}/v1/organization`;
  const { stdout, stderr } = await runShell([...commands, next].join("\necho ----\n"));
  const [credentials, token, calls, refused] = stdout.split("----\n");
  t.is(credentials, "");
  t.is(token, "");
  const [created, followed, list, ...event] = (calls ?? "").trim().split("\n");
  const revoked = event.pop();
  t.is(JSON.parse(created ?? "").slug, "spring");
  t.is(followed, "302 https://example.com/spring");
  const [{ id, clicks, bot_clicks }] = JSON.parse(list ?? "").data;
  t.deepEqual([clicks, bot_clicks], [1, 0]);
  const api = apiAt(service.url, await service.token(organization));
  const counted = await until(async () => {
    const { body } = await api.get<AnalyticsView>(`/v1/links/${id}/analytics`);
    return body.clicks + body.bot_clicks > 0 ? body : undefined;
  });
  t.like(counted, { clicks: 1, bot_clicks: 0 }, "a person's, not a bot's");
  t.regex(event.join("\n"), new RegExp(organization.id));
  t.is(revoked, "200");
  t.is(JSON.parse(refused ?? "").code, "invalid_token");
  t.regex(stderr, /^curl: \(22\) The requested URL returned error: 401$/m);
});

test("the walk says which variable is not set, and shows why a request for a token failed", async (t) => {
  const organization = await service.createOrganization();
  const [, token = "", calls = ""] = walkOf(organization);
  const unset = await runShell(token);
  t.regex(unset.stderr, /CLIENT_ID: is not set/);
  const wrong = await runShell(`CLIENT_ID=${organization.clientId} CLIENT_SECRET=wrong\n${token}${calls}`);
  t.regex(wrong.stdout, /"error":"invalid_client"/);
  t.regex(wrong.stderr, /TOKEN: is not set/);
});

test("the README adds the MCP server as the guide of Claude Code does", (t) => {
  const host = HOSTS.find(({ id }) => id === "claude-code") as (typeof HOSTS)[number];
  const codes = stepsOf(host, "http://localhost:3000/mcp").map(({ code }) => code);
  t.true(read("README.md").includes(codes.join("\n")));
});

test("an encryption key that was generated as documented is accepted", async (t) => {
  const [, command = ""] = /```sh\n(node .*)\n```/.exec(read("docs/settings.md")) ?? [];
  const { stdout } = await runShell(command);
  const cwd = temporaryFolder("documentation");
  const settings = { PORT: "0", ENCRYPTION_KEY: stdout.trim(), LOG_LEVEL: "silent" };
  const server = startServer({ cwd, settings });
  t.truthy(await addressOf(server));
  t.is((await server.stop()).code, 0);
});

test("the scopes of each role are documented", (t) => {
  const rows = [...read("docs/authorization.md").matchAll(/^\| `(owner|admin|member)` \| (.*) \|$/gm)];
  t.deepEqual(
    rows.map(([, role, scopes = ""]) => [role, [...scopes.matchAll(/`(.*?)`/g)].map(([, scope]) => scope)]),
    (["owner", "admin", "member"] as const).map((role) => [role, scopesOfRole(role)]),
  );
});

test("each setting is documented, and no other one", (t) => {
  const [, schema = ""] = read("server/settings/config.ts").split("const schema = z.object({");
  const settings = (schema.split("\n});")[0] ?? "").match(/(?<=^ {2})[A-Z_]+(?=:)/gm) ?? [];
  const rows = read("docs/settings.md").match(/^\| `[A-Z_]+`.*? \|/gm) ?? [];
  const documented = rows.flatMap((row) => row.match(/(?<=`)[A-Z_]+(?=`)/g) ?? []);
  t.true(settings.length > 20);
  t.deepEqual(documented.toSorted(), settings.toSorted());
});

function anchorsOf(document: string): string[] {
  const headings = read(document).matchAll(/^#+ (.*)$/gm);
  return Array.from(headings, ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
}

const NAMED_FILE = /`((?:server|adapters|resources|test|docs)\/(?:[\w./-]+\.ts|[\w./-]*\/))`/g;

test("each document refers to files and headings that exist", (t) => {
  const isBroken = (document: string, target: string) => {
    const [file = "", heading] = target.split("#");
    const resolved = file ? path.join(path.dirname(document), file) : document;
    return !existsSync(path.join(ROOT, resolved)) || (heading && !anchorsOf(resolved).includes(heading));
  };
  for (const document of documents) {
    const links = read(document).matchAll(/\]\((?!https?:)([^)]+)\)/g);
    for (const [, target = ""] of links) t.falsy(isBroken(document, target), `${document}: ${target}`);
    for (const [, file = ""] of read(document).matchAll(NAMED_FILE))
      t.true(existsSync(path.join(ROOT, file)), `${document}: ${file}`);
  }
});

/** Returns the tests that a cell names. The names of other things in code have no slash, or an extension. */
function testsIn(t: ExecutionContext, cell: string, row: string): string[] {
  const named = [...cell.matchAll(/`([a-z\d-]+(?:\/[a-z\d-]+)+)`/g)].map(([, name]) => `${name}.test.ts`);
  t.is(new Set(named).size, named.length, `${row} names a test twice`);
  for (const file of named) t.true(files.includes(file), `${row}: there is no ${file}`);
  return named;
}

test("each security requirement is stated once, and names tests that exist, or says why there is none", (t) => {
  const rows = [...readme.matchAll(/^\| (\d+) \| ([A-Z`].{20,}\.) \| (.*) \|$/gm)];
  for (const [index, [, number]] of rows.entries()) t.is(Number(number), index + 1);
  t.is(new Set(rows.map(([, , requirement]) => requirement)).size, REQUIREMENTS);
  for (const [, number, , tests = ""] of rows.filter(([, , , tests]) => !tests?.startsWith("– "))) {
    const named = testsIn(t, tests, `requirement ${number}`);
    t.is(named.length, tests.split(", ").length, `requirement ${number} names no test, or something else`);
  }
});

const STRIDE =
  "Spoofing|Tampering|Repudiation|Information disclosure|Denial of service|Elevation of privilege";
// Its ID, kind, sentence, mitigation and tests.
const THREAT = new RegExp(
  `^\\| ([A-Z]\\d+) \\| (?:${STRIDE}) \\| [A-Z\`].{15,}?\\. \\| \\S.{15,}[^.] \\| ([^|]*) \\|$`,
);

test("each threat has a mitigation and tests that exist, or says why there is none", (t) => {
  const boundaries = read("docs/security/threat-model.md")
    .split(/^## (?=[A-Z]: )/m)
    .slice(1);
  t.is(boundaries.length, 11);
  for (const boundary of boundaries) {
    const [letter] = boundary;
    const threats = (boundary.match(/^\| .* \|$/gm) ?? []).slice(1);
    t.true(threats.length > 0, letter);
    for (const [index, line] of threats.entries()) {
      const [, id = line, tests = ""] = THREAT.exec(line) ?? [];
      t.is(id, `${letter}${index + 1}`);
      const named = testsIn(t, tests, id);
      t.true(named.length > 0 || tests.startsWith("– "), `${id} names no test`);
    }
  }
});

/** Of ASVS 5.0.0, by level. */
const ASVS_REQUIREMENTS = { 1: 70, 2: 183 };

test("each ASVS requirement of levels 1 and 2 has a status, and evidence or a reason", (t) => {
  const [summary = "", ...chapters] = read("docs/security/asvs.md").split(/^## (?=V\d+ )/m);
  const requirements = chapters.flatMap((chapter) =>
    [...chapter.matchAll(/^\| (V\S*) \| (\S*) \| (.*?) \| (.*?) \| (.*) \|$/gm)].map((cells) => {
      const [, id = "", level = "", requirement = "", status = "", shown = ""] = cells;
      t.regex(id, /^V([1-9]|1[0-7])\.[1-9]\.[1-9]\d?$/);
      t.true(chapter.startsWith(`${id.split(".", 1)[0]} `), id);
      t.regex(requirement, /^.{4,}[^.]$/, id);
      t.regex(status, /^(met|not met|n\/a)$/, id);
      t.regex(shown, /^.{7,}[^.]$/, id);
      const hasEvidence = testsIn(t, shown, id).length > 0 || /\]\(/.test(shown);
      t.true(status !== "met" || hasEvidence, `${id} has no evidence`);
      return { id, level, status };
    }),
  );
  t.is(new Set(requirements.map(({ id }) => id)).size, requirements.length);
  const ofLevels = Map.groupBy(requirements, ({ level }) => level);
  for (const [level, total] of Object.entries(ASVS_REQUIREMENTS)) {
    const statuses = ofLevels.get(level)?.map(({ status }) => status) ?? [];
    t.is(statuses.length, total, `level ${level}`);
    const counts = ["met", "not met", "n/a"].map((one) => statuses.filter((status) => status === one).length);
    t.true(summary.includes(`\n| ${level} | ${counts.join(" | ")} |\n`), `level ${level}: ${counts}`);
  }
  const highest = ofLevels.get("3") ?? [];
  t.true(highest.every(({ status }) => status === "met"));
  t.true(summary.includes(`Of level 3, ${highest.length} requirements`), `level 3: ${highest.length}`);
});
