import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import type { Report } from "../../../certification/src/report.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { runCommand, startCommand, temporaryFolder } from "../../harness/program.ts";
import { selfSigned } from "../../harness/publisher.ts";
import { deploy } from "../oidf/deployment.ts";
import { CLIENT, OTHER, startExampleServer } from "./example-server.ts";
import { useBrowser } from "./user.ts";

export const stage = "long";

const deployment = await deploy();
const { issuer, clients, user, service } = deployment;
const folder = temporaryFolder("conformance");

function configure(name: string, content: object): string {
  const file = path.join(folder, name);
  writeFileSync(file, JSON.stringify(content));
  return file;
}

test("a deployment of linkgate passes every check", async (t) => {
  const [client, other] = clients.map(({ id, secret }) => ({ client_id: id, client_secret: secret }));
  const uris = ["http://127.0.0.1/callback"];
  await service.storage.clients.setRedirectUris(clients[0].organizationId, uris, OPERATOR);
  const config = configure("conformance.json", {
    ...client,
    other_client: other,
    scope: "links:read",
    resource: `${issuer}/v1/links`,
    resource_indicator: `${issuer}/v1`,
    mcp: `${issuer}/mcp`,
    redirect_uri: "http://127.0.0.1/callback",
  });
  const junit = path.join(folder, "junit.xml");
  const command = startCommand(["conformance", issuer, "--config", config, "--junit", junit]);
  const [, address = ""] = await command.says(/^Open (http:\/\/\S+) in a browser/m, "stderr");
  await useBrowser(address, issuer, {
    fields: { username: user.username, password: user.password },
    buttons: ["Sign in", "Allow"],
  });
  const { code, stdout, stderr } = await command.ended;
  t.is(code, 0, stdout);
  t.regex(stdout, /^\d+ checks: \d+ passed, 0 failed, 0 warnings, \d+ skipped$/m, stdout);
  t.regex(stderr, /^(\d+) of \1 checks$/m);
  const xml = readFileSync(junit, "utf8");
  t.regex(
    xml,
    /^<\?xml .+\?>\n<testsuite name="http:\/\/localhost:\d+" tests="\d+" failures="0" skipped="\d+">/,
  );
  for (const secret of clients.map(({ secret }) => secret)) t.false((stdout + xml).includes(secret));
});

test("without a configuration, the checks that need no client pass, and the others are skipped", async (t) => {
  const { code, stdout } = await runCommand(["conformance", issuer, "--json"], {});
  t.is(code, 0, stdout);
  const { checks }: Report = JSON.parse(stdout);
  const verdictOf = (prefix: string) => checks.find(({ id }) => id.startsWith(prefix))?.verdict;
  t.is(verdictOf("metadata-document"), "passed");
  t.is(verdictOf("client-basic"), "skipped");
  const failed = checks.filter(({ verdict }) => verdict === "failed" || verdict === "warning");
  t.deepEqual(failed, []);
});

test("a flaw is reported with clause, request and response, and the exit code is 1", async (t) => {
  const server = await startExampleServer({ resource: { hasNoChallenge: true } });
  t.teardown(server.close);
  const config = configure("example.json", { ...CLIENT, other_client: OTHER, resource: server.resource });
  const words = ["conformance", server.issuer, "--config", config, "--only", "resource-no-token", "jwks"];
  const { code, stdout } = await runCommand([...words, "--json"], {});
  t.is(code, 1);
  const { checks, ...counts } = JSON.parse(stdout) as Report;
  t.deepEqual(counts, { issuer: server.issuer, passed: 3, failed: 1, warning: 0, skipped: 0 });
  const found = checks.find(({ verdict }) => verdict === "failed");
  t.like(found, {
    id: "resource-no-token",
    clause: "RFC 6750 §3, §3.1",
    detail: "WWW-Authenticate has no challenge for Bearer or DPoP",
  });
  const [exchange] = found?.exchanges ?? [];
  t.is(exchange?.request, `GET ${server.resource}`);
  t.regex(exchange?.response ?? "", /^HTTP 401\n/);
  const text = await runCommand(words, {});
  t.is(text.code, 1);
  t.regex(
    text.stdout,
    /^failed resource-no-token: .+ \(RFC 6750 §3, §3\.1\)\n {2}WWW-Authenticate has no challenge/,
  );
  t.regex(text.stdout, /^4 checks: 3 passed, 1 failed, 0 warnings, 0 skipped$/m);
});

const WRONG: [what: string, content: object | undefined, message: RegExp][] = [
  ["no file", undefined, /^Can't read /],
  ["no secret", { client_id: "client" }, /client_secret/],
  ["an unknown field", { ...CLIENT, secret: "x" }, /secret/],
  ["a redirect URI elsewhere", { ...CLIENT, redirect_uri: "https://app.example/" }, /redirect_uri/],
];
for (const [what, content, message] of WRONG)
  test(`a configuration is refused: ${what}`, async (t) => {
    const file = content ? configure(`${what}.json`, content) : path.join(folder, "missing.json");
    const ended = await runCommand(["conformance", issuer, "--config", file, "--json"], {});
    t.is(ended.code, 1);
    const { error } = JSON.parse(ended.stderr);
    t.is(error.code, content ? "invalid_config" : "file_not_found");
    t.regex(error.message, message);
  });

test("a server without metadata is named", async (t) => {
  const config = configure("client.json", CLIENT);
  const { code, stderr } = await runCommand(["conformance", `${issuer}/nowhere`, "--config", config], {});
  t.is(code, 1);
  t.regex(stderr, /nowhere publishes no authorization server metadata/);
});

for (const [what, options, failed] of [
  ["TLS 1.0 and 1.1", { minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" }, ["tls-tlsv1", "tls-tlsv1.1"]],
  ["no TLS before 1.2", {}, []],
] as const)
  test(`a server is checked that accepts ${what}`, async (t) => {
    const { private: key, cert } = await selfSigned("localhost");
    const server = await startExampleServer({ tls: { key, cert, ...options } });
    t.teardown(server.close);
    const trusted = path.join(folder, `${failed.length}.pem`);
    writeFileSync(trusted, cert);
    const config = configure("tls.json", CLIENT);
    const words = ["conformance", server.issuer, "--config", config, "--only", "tls", "--json"];
    const { stdout, stderr } = await runCommand(words, { settings: { NODE_EXTRA_CA_CERTS: trusted } });
    t.is(stderr, "");
    const { checks } = JSON.parse(stdout) as Report;
    const idsOf = (verdict: string) =>
      checks.filter((check) => check.verdict === verdict).map(({ id }) => id);
    t.deepEqual(idsOf("failed"), [...failed]);
    t.deepEqual(idsOf("warning"), ["tls-hsts"]);
    t.is(idsOf("passed").length, 3 - failed.length);
  });
