import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { importJWK, type JWK } from "jose";
import { createDpopKey } from "../../harness/clients/dpop.ts";
import { read } from "../../harness/clients/oauth.ts";
import { Program, ROOT, stopPrograms } from "../../harness/program.ts";
import { deploy } from "./deployment.ts";
import { createFapiFlow, type FapiClient } from "./fapi-client.ts";
import { BASIC, CONFIG, FAPI } from "./plans.ts";
import { type Script, SuiteBrowser } from "./suite-browser.ts";

export const stage = "processes";

type Settings = { client_id: string; client_secret?: string; scope: string; jwks: { keys: [JWK] } };
type Configuration = Record<"client" | "client2" | "client_secret_post", Settings> & {
  alias: string;
  server: { discoveryUrl: string };
  resource: { resourceUrl: string };
  browser: Script[];
  override: Record<string, Partial<Configuration>>;
};

const PREFIX = "fapi2-security-profile-final-";
const SUITE = "https://suite.example.com:8443";
const deployment = await deploy();
const { issuer } = deployment;
const settings = { DATABASE_URL: `sqlite:${deployment.folder}/linkgate.sqlite` };
const plan: Configuration = JSON.parse((await configure(issuer, SUITE)).stdout);
const callback = `${SUITE}/test/a/${plan.alias}/callback`;
const { body } = await read(fetch(plan.server.discoveryUrl));
const metadata = body as Record<string, string>;
const { push, redeem, refresh, call } = createFapiFlow(deployment, metadata);
const [client, client2] = [await toClient(plan.client), await toClient(plan.client2)];
/** The selectors that matched in any module. */
const matched = new Set<string>();
test.after.always(async () => {
  await deployment.stop();
  stopPrograms();
});

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

/** Returns the browser of a module, with which the suite visits all its pages. */
function browserOf(module: string): SuiteBrowser {
  return new SuiteBrowser(issuer, plan.override[module]?.browser ?? plan.browser);
}

async function visit(browser: SuiteBrowser, query: object): Promise<URL> {
  const { url } = await browser.visit(
    `${metadata.authorization_endpoint}?${new URLSearchParams({ ...query })}`,
  );
  for (const selector of browser.matched) matched.add(selector);
  return new URL(url);
}

/** Pushes a request like the suite, which asks for consent only in the module for refresh tokens. */
async function pushPlain(one: FapiClient, redirect_uri = callback, prompt?: string) {
  const { scope } = one === client ? plan.client : plan.client2;
  const { requestUri, verifier, answer } = await push(one, { fields: { redirect_uri, prompt, scope } });
  if (answer.status !== 201) throw new Error(answer.text);
  return {
    verifier,
    expiresIn: Number(answer.body.expires_in),
    query: { client_id: one.id, request_uri: requestUri },
  };
}

test.serial("the clients of the plan get tokens for the resource", async (t) => {
  const browser = browserOf(`${PREFIX}happy-flow`);
  for (const [one, redirect_uri] of [
    [client, callback],
    [client2, `${callback}?dummy1=lorem&dummy2=ipsum`],
  ] as const) {
    const { query, verifier } = await pushPlain(one, redirect_uri);
    const end = await visit(browser, query);
    t.true(end.href.startsWith(redirect_uri));
    const code = String(end.searchParams.get("code"));
    const { body: tokens, text } = await redeem(one, code, verifier, { fields: { redirect_uri } });
    t.is(tokens.token_type, "DPoP", text);
    t.is(plan.resource.resourceUrl, `${issuer}/v1/links`);
    t.is(await call(one, tokens.access_token), 200);
  }
});

test.serial("a request that repeats an earlier one succeeds without the consent page", async (t) => {
  const { query } = await pushPlain(client);
  t.truthy((await visit(browserOf(`${PREFIX}happy-flow`), query)).searchParams.get("code"));
});

test.serial("a request that asks for consent gets a refresh token", async (t) => {
  const { query, verifier } = await pushPlain(client, callback, "consent");
  const code = String((await visit(browserOf(`${PREFIX}refresh-token`), query)).searchParams.get("code"));
  const { body: tokens } = await redeem(client, code, verifier, { fields: { redirect_uri: callback } });
  t.is((await refresh(client, String(tokens.refresh_token))).status, 200);
});

test.serial(
  "the user of the module for rejections cancels, also after others have allowed access",
  async (t) => {
    const browser = browserOf(`${PREFIX}user-rejects-authentication`);
    for (const one of [client, client2]) {
      const { query } = await pushPlain(one);
      t.is((await visit(browser, query)).searchParams.get("error"), "access_denied");
    }
  },
);

test.serial("a request URI that is opened twice before the sign-in succeeds", async (t) => {
  const browser = browserOf(`${PREFIX}par-ensure-reused-request-uri-prior-to-auth-completion-succeeds`);
  const { query } = await pushPlain(client);
  t.is((await visit(browser, query)).origin, issuer);
  t.truthy((await visit(browser, query)).searchParams.get("code"));
});

test.serial("a request URI that was used ends at the suite with an error", async (t) => {
  const browser = browserOf(`${PREFIX}par-attempt-reuse-request_uri`);
  const { query } = await pushPlain(client);
  t.truthy((await visit(browser, query)).searchParams.get("code"));
  t.is((await visit(browser, query)).searchParams.get("error"), "invalid_request_uri");
});

test.serial("the error page has the words that the plan expects", async (t) => {
  const other = browserOf(`${PREFIX}par-attempt-to-use-request_uri-for-different-client`);
  const { query } = await pushPlain(client);
  t.is((await visit(other, { ...query, client_id: client2.id })).origin, issuer);

  const module = "oidcc-ensure-registered-redirect-uri";
  const unregistered = { ...requestOf(module), redirect_uri: `${callback}/unregistered` };
  t.is((await visit(browserOf(module), unregistered)).origin, issuer);
});

test("an expired request URI ends with the error page", async (t) => {
  const { query, expiresIn } = await pushPlain(client);
  const wait = (expiresIn + 1) * 1000;
  t.timeout(wait + 20_000);
  await sleep(wait);
  t.is((await visit(browserOf(`${PREFIX}par-attempt-to-use-expired-request_uri`), query)).origin, issuer);
});

test.serial("a request that isn't pushed is refused, after the sign-in", async (t) => {
  const module = `${PREFIX}ensure-unsigned-authorization-request-without-using-par-fails`;
  const query = { ...requestOf(module), client_id: client.id, scope: plan.client.scope };
  t.is((await visit(browserOf(module), query)).searchParams.get("error"), "invalid_request");
});

/** The request of a module of the OpenID Connect plan, which has no PKCE. */
function requestOf(module: string) {
  const { client_id } = plan.override[module]?.client ?? plan.client;
  const state = "state";
  return { response_type: "code", client_id, redirect_uri: callback, scope: "openid", state, nonce: "nonce" };
}

test.serial(
  "code flows of the OpenID Connect plan end with invalid_request, because they lack PKCE",
  async (t) => {
    const end = await visit(browserOf("oidcc-server"), requestOf("oidcc-server"));
    t.is(end.origin + end.pathname, callback);
    t.is(end.searchParams.get("error"), "invalid_request");
  },
);

test.serial("every selector of the plan matches an element", (t) => {
  const scripts = [plan, ...Object.values(plan.override)].flatMap(({ browser = [] }) => browser);
  const selectors = scripts
    .flatMap(({ tasks }) => tasks)
    .flatMap(({ commands = [] }) => commands)
    .map(([, kind, target]) => `${kind} ${target}`)
    .filter((selector) => selector !== "id submission_complete");
  t.deepEqual([...matched].sort(), [...new Set(selectors)].sort());
});

test("the clients of the OpenID Connect plan have secrets, and those of the FAPI plan keys", (t) => {
  t.deepEqual([client.alg, client2.alg], ["PS256", "ES256"]);
  for (const module of BASIC.modules) {
    const { client: basic, client2: other } = plan.override[module] ?? {};
    t.regex(`${basic?.client_secret} ${other?.client_secret}`, /^lgs_\S+ lgs_\S+$/);
    t.not(basic?.client_id, other?.client_id);
  }
  t.regex(String(plan.client_secret_post.client_secret), /^lgs_/);
});

test("each override is one of a module of the plans", (t) => {
  const modules = [...BASIC.modules, ...CONFIG.modules, ...FAPI.modules.map((name) => PREFIX + name)];
  t.deepEqual(
    Object.keys(plan.override).filter((name) => !modules.includes(name)),
    [],
  );
});

test("no example value of plan.json is left", (t) => {
  const text = JSON.stringify(plan);
  for (const example of [
    "links.example.com",
    "linkgate-conformance",
    "suite-password",
    "client-1",
    "client-2",
  ])
    t.true(readFileSync(`${import.meta.dirname}/plan.json`, "utf8").includes(example), example);
  t.notRegex(text, /links\.example\.com|linkgate-conformance|suite-password|"client-\d"|"secret-\d"/);
});

test("without the URL of the server, the usage is printed", async (t) => {
  const { code, stderr } = await configure();
  t.is(code, 1);
  t.regex(stderr, /^usage: /);
});
