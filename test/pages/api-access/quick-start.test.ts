import { execFile } from "node:child_process";
import { promisify } from "node:util";
import test from "ava";
import { parse } from "node-html-parser";
import { createTeamWithClient, openAs } from "../../harness/clients/dashboard.ts";
import { PYTHON } from "../../harness/clients/python.ts";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";

const run = promisify(execFile);
const service = await startTestService();
const { client, ...team } = await createTeamWithClient(service);
const { clientId, clientSecret } = client;
const { browser, page } = await openAs(service, team.owner, `${team.base}/client/quick-start`);
const env = { ...process.env, CLIENT_SECRET: clientSecret };

function snippet(name: string): string {
  // By default, the parser treats preformatted elements as plain text.
  const html = parse(page.text, { blockTextElements: { script: true } });
  return html.querySelector(`#${name} code`)?.text ?? "";
}

const isLink = /["']?id["']?: ?["']lnk_/;

test("the page contains the client ID and no secret; that of workloads contains it, too", async (t) => {
  t.is(page.status, 200);
  t.truthy(page.html.querySelector(`main a[href="${team.base}/connect"]`));
  t.false(page.text.includes(clientSecret));
  t.true(page.html.querySelector("#typescript figcaption")?.text.includes("link.mts"));
  for (const name of ["curl", "client", "typescript", "python", "mcp"]) {
    t.true(snippet(name).includes(clientId), name);
    t.is(page.html.querySelector(`#${name} [data-copy]`)?.attributes["data-copy"], snippet(name));
  }
  t.true((await browser.open(`${service.url}${team.base}/workload-identity`)).text.includes(clientId));
});

test("with a wrong secret, or none, the curl snippet prints the reason and sends no request to the API", async (t) => {
  for (const [CLIENT_SECRET, stderr] of [
    ["incorrect", /"error":"invalid_client"/],
    ["", /CLIENT_SECRET/],
  ] as const) {
    const script = run("sh", ["-c", snippet("curl")], { env: { ...env, CLIENT_SECRET } });
    const failure = (await t.throwsAsync(script)) as Error & { stdout: string; stderr: string };
    t.regex(failure.stderr, stderr);
    t.is(failure.stdout, "");
  }
});

// In the folder of the project, which has the packages installed. test/processes/client-package.test.ts installs ours.
const NODE = [process.execPath, "--input-type=module-typescript", "-e"];
const PROGRAMS = {
  curl: ["sh", "-c"],
  typescript: NODE,
  client: NODE,
  mcp: NODE,
  python: [PYTHON ?? "", "-c"],
};

for (const [name, [program = "", ...options]] of Object.entries(PROGRAMS)) {
  const title = `the snippet ${name} creates a link`;
  // Authlib is not an npm package; CI installs it.
  if (!program) skip(title, "no Python here has Authlib");
  else
    test(title, async (t) => {
      const code = snippet(name).replace("@linkgate/client", `${ROOT}client/src/index.ts`);
      const { stdout } = await run(program, [...options, code], { cwd: ROOT, env });
      t.regex(stdout, isLink);
    });
}
