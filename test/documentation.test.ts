import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { glob } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import { scopesOfRole } from "../resources/access/scopes.ts";
import type { AnalyticsView } from "../resources/links/analytics.ts";
import { HOSTS, stepsOf } from "../server/dashboard/connect/guides.ts";
import { apiAt } from "./harness/clients/api.ts";
import { addressOf, ROOT, runShell, startServer, stopPrograms } from "./harness/program.ts";
import { startTestService, type TestOrganization } from "./harness/service.ts";
import { until } from "./harness/webhooks.ts";

const service = await startTestService();
const documents = await Array.fromAsync(
  glob("{*.md,client/*.md,docs/**/*.md,{server,adapters,resources,test}/**/README.md}", {
    cwd: ROOT,
    exclude: ["**/node_modules"], // the benchmark's references have their own
  }),
);

const REQUIREMENTS = 143;
const folder = new URL(".", import.meta.url).pathname;
const readme = readFileSync(`${folder}README.md`, "utf8");
const files = await Array.fromAsync(glob("**/*.test.ts", { cwd: folder }));

test.after.always(async () => {
  stopPrograms();
  await service.close();
});

const read = (document: string) => readFileSync(path.join(ROOT, document), "utf8");

/** Returns the shell commands of a section, for the service of this test. */
function commandsOf(
  document: string,
  heading: string,
  { clientId, clientSecret }: TestOrganization,
): string[] {
  const [, section = ""] = read(document).split(`\n## ${heading}\n`);
  const [own = ""] = section.split("\n## ");
  return [...own.matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].map(([, command = ""]) =>
    command
      .replaceAll("http://localhost:3000", service.url)
      .replace("CLIENT_ID=lgc_… CLIENT_SECRET=lgs_…", `CLIENT_ID=${clientId} CLIENT_SECRET=${clientSecret}`),
  );
}

const WALK = "A walk of six commands";

test("the README has at most 120 lines", (t) => {
  t.true(read("README.md").trimEnd().split("\n").length <= 120);
});

test("the walk through the API in the README works when pasted", async (t) => {
  const organization = await service.createOrganization();
  const commands = commandsOf("README.md", WALK, organization);
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
  const [, token = "", calls = ""] = commandsOf("README.md", WALK, organization);
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
  const cwd = mkdtempSync(path.join(tmpdir(), "linkgate-documentation-"));
  const settings = { PORT: "0", ENCRYPTION_KEY: stdout.trim(), LOG_LEVEL: "silent" };
  const server = startServer({ cwd, settings });
  t.truthy(await addressOf(server));
  t.is((await server.stop()).code, 0);
  rmSync(cwd, { recursive: true });
});

test("the scopes of each role are documented", (t) => {
  const rows = [...read("docs/authorization.md").matchAll(/^\| `(owner|admin|member)` \| (.*) \|$/gm)];
  t.deepEqual(
    rows.map(([, role, scopes = ""]) => [role, [...scopes.matchAll(/`(.*?)`/g)].map(([, scope]) => scope)]),
    (["owner", "admin", "member"] as const).map((role) => [role, scopesOfRole(role)]),
  );
});

test("each setting is documented, and no other one", (t) => {
  const schema =
    read("server/settings/config.ts").split("const schema = z.object({")[1]?.split("\n});")[0] ?? "";
  const settings = [...schema.matchAll(/^ {2}([A-Z_]+):/gm)].map(([, name]) => name as string);
  const rows = read("docs/settings.md").match(/^\| `[A-Z_]+`.*? \|/gm) ?? [];
  const documented = rows.flatMap((row) =>
    [...row.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name as string),
  );
  t.true(settings.length > 20);
  t.deepEqual(documented.toSorted(), settings.toSorted());
});

/** Returns the anchors that GitHub gives to the headings of a document. */
function anchorsOf(document: string): string[] {
  const headings = read(document).match(/^#+ .*$/gm) ?? [];
  return headings.map((line) =>
    line
      .replace(/^#+ /, "")
      .toLowerCase()
      .replace(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
}

for (const document of documents) {
  test(`${document} refers to files and headings that exist`, (t) => {
    const links = [...read(document).matchAll(/\]\((?!https?:)([^)]+)\)/g)].map(
      ([, target]) => target as string,
    );
    const broken = links.filter((target) => {
      const [file = "", heading] = target.split("#");
      const resolved = file ? path.join(path.dirname(document), file) : document;
      return !existsSync(path.join(ROOT, resolved)) || (heading && !anchorsOf(resolved).includes(heading));
    });
    t.deepEqual(broken, []);
    const files = [
      ...read(document).matchAll(/`((?:server|adapters|resources|test|docs)\/(?:[\w./-]+\.ts|[\w./-]*\/))`/g),
    ];
    t.deepEqual(
      files.map(([, file]) => file as string).filter((file) => !existsSync(path.join(ROOT, file))),
      [],
    );
  });
}

const rows = [...readme.matchAll(/^\| (\d+) \| (.*) \| (.*) \|$/gm)].map(
  ([, number, requirement = "", tests = ""]) => ({ number: Number(number), requirement, tests }),
);

test("the table states each security requirement once, in order", (t) => {
  t.deepEqual(
    rows.map(({ number }) => number),
    Array.from({ length: REQUIREMENTS }, (_, index) => index + 1),
  );
  for (const { number, requirement } of rows)
    t.regex(requirement, /^[A-Z`].{20,}\.$/, `requirement ${number} is not a sentence`);
  t.is(new Set(rows.map(({ requirement }) => requirement)).size, REQUIREMENTS);
});

/** Returns the tests that a cell names. The names of other things in code have no slash, or an extension. */
function testsIn(cell: string): string[] {
  return [...cell.matchAll(/`([a-z\d-]+(?:\/[a-z\d-]+)+|flow)`/g)].map(([, name]) => `${name}.test.ts`);
}

function namesTests(t: ExecutionContext, cell: string, row: string): void {
  const named = testsIn(cell);
  t.is(new Set(named).size, named.length, `${row} names a test twice`);
  for (const file of named) t.true(files.includes(file), `${row}: there is no ${file}`);
}

test("each security requirement names tests that exist, or says why there is none", (t) => {
  for (const { number, tests } of rows) {
    if (tests.startsWith("– ")) continue;
    const row = `requirement ${number}`;
    t.true(testsIn(tests).length > 0, `${row} names no test`);
    t.is(testsIn(tests).length, tests.split(", ").length, `${row} names something else`);
    namesTests(t, tests, row);
  }
});

const STRIDE =
  /^(Spoofing|Tampering|Repudiation|Information disclosure|Denial of service|Elevation of privilege)$/;

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
      const [id = "", kind = "", threat = "", mitigation = "", tests = "", ...more] = line
        .slice(2, -2)
        .split(" | ");
      t.deepEqual([id, more], [`${letter}${index + 1}`, []]);
      t.regex(kind, STRIDE, id);
      t.regex(threat, /^[A-Z`].{15,}\.$/, id);
      t.regex(mitigation, /^\S.{15,}[^.]$/, id);
      if (!tests.startsWith("– ")) t.true(testsIn(tests).length > 0, `${id} names no test`);
      namesTests(t, tests, id);
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
      return { id, level: Number(level), requirement, status, shown, chapter: chapter.split(" ", 1)[0] };
    }),
  );
  t.is(new Set(requirements.map(({ id }) => id)).size, requirements.length);
  for (const { id, chapter, requirement, status, shown } of requirements) {
    t.regex(id, /^V([1-9]|1[0-7])\.[1-9]\.[1-9]\d?$/);
    t.is(id.split(".", 1)[0], chapter, id);
    t.regex(requirement, /^.{4,}[^.]$/, id);
    t.regex(status, /^(met|not met|n\/a)$/, id);
    t.regex(shown, /^.{7,}[^.]$/, id);
    if (status === "met") t.true(testsIn(shown).length > 0 || /\]\(/.test(shown), `${id} has no evidence`);
    namesTests(t, shown, id);
  }
  for (const [level, total] of Object.entries(ASVS_REQUIREMENTS)) {
    const ofLevel = requirements.filter((requirement) => requirement.level === Number(level));
    t.is(ofLevel.length, total, `level ${level}`);
    const counts = ["met", "not met", "n/a"].map(
      (one) => ofLevel.filter(({ status }) => status === one).length,
    );
    t.true(summary.includes(`\n| ${level} | ${counts.join(" | ")} |\n`), `level ${level}: ${counts}`);
  }
  const highest = requirements.filter(({ level }) => level === 3);
  t.true(highest.every(({ status }) => status === "met"));
  t.true(summary.includes(`Of level 3, ${highest.length} requirements`), `level 3: ${highest.length}`);
});
