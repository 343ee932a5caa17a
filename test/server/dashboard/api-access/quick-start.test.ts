import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { parse } from "node-html-parser";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { PYTHON } from "../../../harness/clients/python.ts";
import { ROOT } from "../../../harness/program.ts";
import { startTestService } from "../../../harness/service.ts";
import { skip } from "../../../harness/skip.ts";

const run = promisify(execFile);
const service = await startTestService();
const team = await createTeam(service, "free");
const { id: organizationId } = team.organization;
const actor = { id: team.owner.id };
const client = (await service.storage.organizations.setPlan(organizationId, "growth", actor))?.client;
if (!client) throw new Error("the upgrade created no client");
const { clientId, clientSecret } = client;
const { browser } = await browserOf(service, team.owner);
const page = await browser.open(`${service.url}${team.base}/client/quick-start`);
const env = { ...process.env, CLIENT_SECRET: clientSecret };
test.after.always(() => service.close());

/** Returns a snippet as a user copies it. */
function snippet(name: string): string {
  // By default, the parser treats preformatted elements as plain text.
  const html = parse(page.text, { blockTextElements: { script: true } });
  return html.querySelector(`#${name} code`)?.text ?? "";
}

const isLink = /["']?id["']?: ?["']lnk_/;

test("the page contains the client ID and no secret", (t) => {
  t.is(page.status, 200);
  t.false(page.text.includes(clientSecret));
  t.true(page.html.querySelector("#typescript figcaption")?.text.includes("link.mts"));
  for (const name of ["curl", "client", "typescript", "python", "mcp"]) {
    t.true(snippet(name).includes(clientId), name);
    t.is(page.html.querySelector(`#${name} [data-copy]`)?.attributes["data-copy"], snippet(name));
  }
});

test("the curl snippet creates a link", async (t) => {
  const { stdout } = await run("sh", ["-c", snippet("curl")], { env });
  t.regex(stdout, isLink);
});

const WRONG_SECRETS: [what: string, env: Record<string, string>, stderr: RegExp][] = [
  ["an incorrect secret", { CLIENT_SECRET: "incorrect" }, /"error":"invalid_client"/],
  ["no secret", { CLIENT_SECRET: "" }, /CLIENT_SECRET/],
];

for (const [what, wrong, stderr] of WRONG_SECRETS) {
  test(`with ${what} the curl snippet prints the reason and sends no request to the API`, async (t) => {
    const script = run("sh", ["-c", snippet("curl")], { env: { ...env, ...wrong } });
    const failure = (await t.throwsAsync(script)) as Error & { stdout: string; stderr: string };
    t.regex(failure.stderr, stderr);
    t.is(failure.stdout, "");
  });
}

test("the TypeScript snippet creates a link", async (t) => {
  // Inside the project, which has openid-client installed.
  const file = path.join(ROOT, "test/server/dashboard/api-access/.quick-start.mts");
  await writeFile(file, snippet("typescript"));
  try {
    const { stdout } = await run(process.execPath, [file], { env });
    t.regex(stdout, isLink);
  } finally {
    await rm(file);
  }
});

test("the snippet of the TypeScript client creates a link", async (t) => {
  const file = path.join(ROOT, "test/server/dashboard/api-access/.quick-start-client.mts");
  // test/client/package.test.ts installs the package; this is its source.
  await writeFile(file, snippet("client").replace("@linkgate/client", "../../../../client/src/index.ts"));
  try {
    const { stdout } = await run(process.execPath, [file], { env });
    t.regex(stdout, isLink);
  } finally {
    await rm(file);
  }
});

const pythonTitle = "the Python snippet creates a link";
// Authlib is not an npm package; CI installs it.
if (!PYTHON) skip(pythonTitle, "no Python here has Authlib");
else
  test(pythonTitle, async (t) => {
    const { stdout } = await run(PYTHON as string, ["-c", snippet("python")], { env });
    t.regex(stdout, isLink);
  });

test("the page leads users of AI clients to Connect", (t) => {
  t.truthy(page.html.querySelector(`main a[href="${team.base}/connect"]`));
});

test("the MCP snippet creates a link", async (t) => {
  // Inside the project, which has the MCP SDK's client installed.
  const file = path.join(ROOT, "test/server/dashboard/api-access/.quick-start-mcp.mts");
  await writeFile(file, snippet("mcp"));
  try {
    const { stdout } = await run(process.execPath, [file], { env });
    t.regex(stdout, isLink);
  } finally {
    await rm(file);
  }
});
