import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "ava";
import { importJWK, type JWK } from "jose";
import { openConsent } from "../../harness/clients/authorization.ts";
import { authorizeUrl } from "../../harness/clients/authorization-request.ts";
import { createDpopKey } from "../../harness/clients/dpop.ts";
import { read } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { Program, ROOT } from "../../harness/program.ts";
import { deploy, REDIRECT_URI } from "./deployment.ts";
import { createFapiFlow, type FapiClient } from "./fapi-client.ts";
import { BASIC, CONFIG, FAPI } from "./plans.ts";

export const stage = "processes";

type Settings = { client_id: string; client_secret?: string; scope: string; jwks: { keys: [JWK] } };
type Configuration = Record<"client" | "client2" | "client_secret_post", Settings> & {
  alias: string;
  server: { discoveryUrl: string };
  resource: { resourceUrl: string };
  override: Record<string, Partial<Configuration>>;
};

const SUITE = "https://suite.example.com:8443";
const database = await createTestDatabase();
const settings = { DATABASE_URL: database.url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") };
const deployment = await deploy(settings);
const { issuer } = deployment;
const plan: Configuration = JSON.parse((await configure(issuer, SUITE)).stdout);

function configure(...words: string[]) {
  return new Program(process.execPath, [`${ROOT}test/conformance/oidf/configure.ts`, ...words], { settings })
    .ended;
}

async function toClient({ client_id: id, jwks }: Settings): Promise<FapiClient> {
  const [key] = jwks.keys;
  const privateKey = (await importJWK(key)) as FapiClient["privateKey"];
  const dpop = await createDpopKey();
  return { id, secret: "", organizationId: "", alg: String(key.alg), privateKey, dpop };
}

test("the clients of the FAPI plan have keys, and get tokens for the resource", async (t) => {
  const { body } = await read(fetch(plan.server.discoveryUrl));
  const { push, open, redeem, call } = createFapiFlow(deployment, body as Record<string, string>);
  const callback = `${SUITE}/test/a/${plan.alias}/callback`;
  t.is(plan.resource.resourceUrl, `${issuer}/v1/links`);
  for (const [alg, own, redirect_uri] of [
    ["PS256", plan.client, callback],
    ["ES256", plan.client2, `${callback}?dummy1=lorem&dummy2=ipsum`],
  ] as const) {
    const client = await toClient(own);
    t.is(client.alg, alg);
    const { requestUri, verifier } = await push(client, { fields: { redirect_uri, scope: own.scope } });
    const end = await open(client, requestUri);
    t.true(end.href.startsWith(redirect_uri));
    const code = String(end.searchParams.get("code"));
    const { body: tokens, text } = await redeem(client, code, verifier, { fields: { redirect_uri } });
    t.is(tokens.token_type, "DPoP", text);
    t.is(await call(client, tokens.access_token), 200);
  }
});

test("the clients of the OpenID Connect plan have secrets, and overrides are of modules", (t) => {
  for (const module of BASIC.modules) {
    const { client: basic, client2: other } = plan.override[module] ?? {};
    t.regex(`${basic?.client_secret} ${other?.client_secret}`, /^lgs_\S+ lgs_\S+$/);
    t.not(basic?.client_id, other?.client_id);
  }
  t.regex(String(plan.client_secret_post.client_secret), /^lgs_/);
  const fapi = FAPI.modules.map((name) => `fapi2-security-profile-final-${name}`);
  const modules = new Set([...BASIC.modules, ...CONFIG.modules, ...fapi]);
  t.deepEqual([...new Set(Object.keys(plan.override)).difference(modules)], []);
});

test("the elements and words that the scripts look for are on the pages", async (t) => {
  const { service, clients, user } = deployment;
  const browser = new TestBrowser(issuer);
  const url = authorizeUrl(service, { clientId: clients[0].id }, { redirect_uri: REDIRECT_URI });
  const failed = await browser.open(authorizeUrl(service, { clientId: "unknown" }));
  const pages = [await browser.open(`${issuer}/auth/login`), await browser.open(url)];
  pages.push(await openConsent(browser, user, url));
  const scripts = readFileSync(`${import.meta.dirname}/plan.json`, "utf8");
  for (const [, kind, target = ""] of scripts.matchAll(/"(id|css)", "(?!submission_complete)([^"]+)"/g)) {
    const selector = kind === "id" ? `#${target}` : target;
    t.true(
      pages.some(({ html }) => html.querySelector(selector)),
      selector,
    );
  }
  const words = scripts.match(/"xpath", "\S+", \d+, "([^"]+)"/)?.[1];
  t.true(words !== undefined && failed.text.includes(words), words);
});

const EXAMPLES = /links\.example\.com|linkgate-conformance|suite-password|"client-\d"|"secret-\d"/;

test("no example value of plan.json is left", (t) => {
  t.regex(readFileSync(`${import.meta.dirname}/plan.json`, "utf8"), EXAMPLES);
  t.notRegex(JSON.stringify(plan), EXAMPLES);
});
