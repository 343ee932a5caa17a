import test, { type ExecutionContext } from "ava";
import { register } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { freePort } from "../../harness/program.ts";
import { OPERATOR, startTestService, type TestService, type TestUser } from "../../harness/service.ts";
import { until } from "../../harness/webhooks.ts";
import { reportTable } from "../report.ts";
import { BASELINE } from "./baseline.ts";
import { run, start, startTokenProxy, type Version } from "./suite.ts";

const port = await freePort();
const proxy = await startTokenProxy(port);
const service = await startTestService({
  PORT: String(port),
  BASE_URL: proxy.url,
  DYNAMIC_REGISTRATION: "stateless",
});
const organization = await service.createOrganization();
const user = await service.createUser([organization.id], undefined, "owner");
proxy.use(await service.token(organization));

const RUNS: [what: string, version: Version, args: string[]][] = [
  ["the stable version", "mcp-conformance", []],
  ["revision 2026-07-28", "mcp-conformance-alpha", ["--requirements", "2026-07-28"]],
  ["revision 2025-11-25", "mcp-conformance-alpha", ["--requirements", "2025-11-25"]],
  ["revision 2025-06-18", "mcp-conformance-alpha", ["--spec-version", "2025-06-18"]],
];
const expected = BASELINE.flatMap(({ checks }) =>
  Object.entries(checks).flatMap(([scenario, ids]) => ids.map((id) => `${scenario}:${id}`)),
);
const seen = new Set<string>();
const results = [["Run", "Checks passed", "Failed"]];

for (const [what, version, args] of RUNS)
  test.serial(`only checks that need the suite's example server fail with ${what}`, async (t) => {
    const { checks, stdout } = await run(version, ["server", "--url", `${proxy.url}/mcp`, ...args]);
    const ids = new Set(checks.map(({ scenario, id }) => `${scenario}:${id}`));
    const failed = checks.filter(({ status }) => status === "FAILURE");
    t.deepEqual(
      failed.map(({ scenario, id }) => `${scenario}:${id}`).toSorted(),
      expected.filter((check) => ids.has(check)).toSorted(),
      stdout,
    );
    const passed = checks.filter(({ status }) => status === "SUCCESS").length;
    results.push([what, String(passed), String(failed.length)]);
    for (const id of ids) seen.add(id);
  });

test.serial("each check of the baseline failed, and the documentation has the results", (t) => {
  const unseen = expected.filter((check) => !seen.has(check));
  t.deepEqual(unseen, []);
  reportTable(t, "mcp-runs", results as [string[], ...string[][]]);
  const reasons = BASELINE.map(({ reason, checks }) => [
    reason,
    Object.keys(checks)
      .map((name) => `\`${name}\``)
      .join(", "),
  ]);
  reportTable(t, "mcp-baseline", [["Reason", "Scenarios with checks that fail"], ...reasons]);
});

const isReached = (url: string) =>
  fetch(url).then(
    ({ status }) => status === 200,
    () => false,
  );

/** Runs the scenarios of the authorization server, of which the code flow waits for a browser. */
async function runAuthorization(
  t: ExecutionContext,
  at: TestService,
  who: TestUser,
  callbackPort: number,
  client: string[],
) {
  const { base, mcp } = at.urls;
  const options = ["--url", base, "--resource", mcp, "--port", String(callbackPort), ...client];
  const program = start("mcp-conformance-alpha", ["authorization", ...options]);
  const [url] = await program.says(/http:\/\/\S+\/oauth\/authorize\?\S+/);
  const browser = new TestBrowser(base);
  const consent = await browser.signIn(await browser.open(String(url)), who);
  const { url: callback } = await browser.press(consent, "Allow");
  // The program may listen a moment after it has printed the address, and ends when it has the code.
  let isRunning = true;
  void program.ended.then(() => (isRunning = false));
  await until(async () => !isRunning || (await isReached(callback)) || undefined);
  const { code, stdout } = await program.ended;
  t.is(code, 0, stdout);
  t.regex(stdout, /authorization-server-metadata-endpoint/);
  t.regex(stdout, /authorization-code-grant/);
}

test("the metadata and the code flow of a public client pass", async (t) => {
  const callbackPort = await freePort();
  const redirect_uris = [`http://127.0.0.1:${callbackPort}/callback`];
  const { clientId } = await register(service, { client_name: "Conformance", redirect_uris });
  await runAuthorization(t, service, user, callbackPort, ["--client-id", clientId]);
});

// The suite chooses `none` wherever it is listed, even with a secret.
test("the metadata and the code flow of an organization's client pass where public clients are off", async (t) => {
  const confidential = await startTestService({ CIMD: "off" });
  const app = await confidential.createOrganization();
  const owner = await confidential.createUser([app.id], undefined, "owner");
  const callbackPort = await freePort();
  await confidential.storage.clients.setRedirectUris(
    app.id,
    [`http://127.0.0.1:${callbackPort}/callback`],
    OPERATOR,
  );
  const client = ["--client-id", app.clientId, "--client-secret", app.clientSecret];
  await runAuthorization(t, confidential, owner, callbackPort, client);
});
