import { randomBytes } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/engine.ts";
import { createTestDatabase } from "../harness/database.ts";
import { authorizeUrl, basic, createApp, formOf, read } from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";

const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  RATE_LIMIT: "on",
});
const { app } = await createApp(service);
test.after.always(async () => {
  await service.close();
  await database.drop();
});

const ACCEPTS: Record<string, string> = {
  "Java's HttpURLConnection": "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
  "a browser": "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8",
  "text/html alone": "text/html",
  anything: "*/*",
};
const BROWSER = { accept: ACCEPTS["a browser"] as string };
const ENDPOINTS = ["token", "revoke", "introspect", "par"];
const CREDENTIALS = { grant_type: "client_credentials" };

type Refusal = [what: string, status: number, path: string, init?: RequestInit];

const post = (body: URLSearchParams | string, headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  body,
  headers,
});

const REFUSALS: Refusal[] = [
  ...ENDPOINTS.flatMap((endpoint): Refusal[] => {
    const path = `/oauth/${endpoint}`;
    return [
      [`a wrong secret at ${endpoint}`, 401, path, post(formOf({}), basic({ ...app, clientSecret: "x" }))],
      [`a missing parameter at ${endpoint}`, 400, path, post(formOf({}), basic(app))],
      [`no credentials at ${endpoint}`, endpoint === "introspect" ? 401 : 400, path, post(formOf({}))],
      [`GET at ${endpoint}`, 405, path],
      [`JSON at ${endpoint}`, 400, path, post("{}", { "content-type": "application/json" })],
      [`60 kB at ${endpoint}`, 400, path, post(formOf({ x: "x".repeat(60_000) }), basic(app))],
    ];
  }),
  ["an unknown scope", 400, "/oauth/token", post(formOf({ ...CREDENTIALS, scope: "admin" }), basic(app))],
  ["an unknown address", 404, "/oauth/nothing"],
  ["a trailing slash", 404, "/oauth/token/", post(formOf(CREDENTIALS), basic(app))],
  ["POST at the keys", 405, "/oauth/jwks", { method: "POST" }],
  ["an unknown document", 404, "/.well-known/nothing"],
  ["POST at the metadata", 404, "/.well-known/openid-configuration", { method: "POST" }],
  ["DELETE at the metadata", 404, "/.well-known/oauth-authorization-server", { method: "DELETE" }],
  ["metadata of no resource", 404, "/.well-known/oauth-protected-resource/nothing"],
];

async function isRefusedInJson(t: ExecutionContext, [what, status, path, init]: Refusal) {
  for (const [who, accept] of Object.entries(ACCEPTS)) {
    const headers = { ...(init?.headers as Record<string, string>), accept };
    const answer = await read(fetch(service.url + path, { ...init, headers }));
    t.is(answer.status, status, `${what}, ${who}: ${answer.text}`);
    t.regex(answer.headers.get("content-type") ?? "", /^application\/(problem\+)?json/, `${what}, ${who}`);
    t.is(typeof (answer.body.error ?? answer.body.code), "string", answer.text);
  }
}

for (const refusal of REFUSALS) {
  const [what, status] = refusal;
  test(`sec 44: ${what} is a ${status} in JSON for every Accept header`, isRefusedInJson, refusal);
}

for (const [who, accept] of Object.entries(ACCEPTS)) {
  test(`keys and metadata are JSON for ${who}`, async (t) => {
    for (const path of [
      "/oauth/jwks",
      "/.well-known/openid-configuration",
      "/.well-known/oauth-authorization-server",
      "/.well-known/oauth-protected-resource",
    ]) {
      const { status, headers } = await read(fetch(service.url + path, { headers: { accept } }));
      t.is(status, 200, path);
      t.regex(headers.get("content-type") ?? "", /^application\/(jwk-set\+)?json/, path);
    }
  });
}

for (const [what, url, init] of [
  ["a bad request", authorizeUrl(service, app, { redirect_uri: "https://evil.example/" })],
  ["an expired request", `${service.url}/oauth/authorize/nothing`],
  ["a form that is too large", `${service.url}/oauth/authorize`, post(formOf({ x: "x".repeat(60_000) }))],
] as [string, string, RequestInit?][]) {
  test(`at the authorization endpoint ${what} stays a page in a browser`, async (t) => {
    const { status, headers, text } = await read(fetch(url, { ...init, headers: BROWSER }));
    t.true(status >= 400 && status < 500, String(status));
    t.regex(headers.get("content-type") ?? "", /^text\/html/);
    t.regex(text, /<h1>/);
  });
}

test.serial("sec 44, 57: too many guesses are a 429 in JSON for every Accept header", async (t) => {
  const { app: guessed } = await createApp(service);
  // Also with a browser's header: the limit reads the error from the JSON.
  const headers = { ...basic({ ...guessed, clientSecret: "lgs_wrong" }), ...BROWSER };
  const guess = post(formOf(CREDENTIALS), headers);
  let { status } = await fetch(`${service.url}/oauth/token`, guess);
  for (let guesses = 1; guesses < 60 && status !== 429; guesses++) {
    ({ status } = await fetch(`${service.url}/oauth/token`, guess));
  }
  await isRefusedInJson(t, ["a guess", 429, "/oauth/token", guess]);
});

test.serial("sec 44, 99: a server error is a 500 in JSON for every Accept header", async (t) => {
  const knex = knexFactory(knexConfig(database.url));
  await knex.schema.renameTable("clients", "gone");
  t.teardown(async () => {
    await knex.schema.renameTable("gone", "clients");
    await knex.destroy();
  });
  for (const endpoint of ENDPOINTS) {
    const request = post(formOf(CREDENTIALS), basic(app));
    await isRefusedInJson(t, [endpoint, 500, `/oauth/${endpoint}`, request]);
  }
});
