import test, { type ExecutionContext } from "ava";
import { createApp, formOf } from "../harness/clients/authorization-request.ts";
import { basic, read } from "../harness/clients/oauth.ts";
import { startServiceWithDatabase } from "../harness/database/service.ts";

const { service, knex } = await startServiceWithDatabase({ RATE_LIMIT: "on" });
const { app } = await createApp(service);

const ACCEPTS: Record<string, string> = {
  "Java's HttpURLConnection": "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
  "a browser": "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8",
  "text/html only": "text/html",
  "any type": "*/*",
};
const BROWSER = { accept: ACCEPTS["a browser"] as string };
const ENDPOINTS = ["token", "revoke", "introspect", "par"];
const CREDENTIALS = { grant_type: "client_credentials" };

type Failure = [what: string, status: number, path: string, init?: RequestInit];

const post = (body: URLSearchParams | string, headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  body,
  headers,
});

const FAILURES: Failure[] = [
  ...ENDPOINTS.flatMap((endpoint): Failure[] => {
    const path = `/oauth/${endpoint}`;
    return [
      [`a wrong secret at ${endpoint}`, 401, path, post(formOf({}), basic({ ...app, clientSecret: "x" }))],
      [`a missing parameter at ${endpoint}`, 400, path, post(formOf({}), basic(app))],
      [`no credentials at ${endpoint}`, endpoint === "introspect" ? 401 : 400, path, post(formOf({}))],
      [`GET at ${endpoint}`, 405, path],
      [`a JSON body at ${endpoint}`, 400, path, post("{}", { "content-type": "application/json" })],
      [`a body of 60 KB at ${endpoint}`, 400, path, post(formOf({ x: "x".repeat(60_000) }), basic(app))],
    ];
  }),
  ["an unknown path", 404, "/oauth/nothing"],
  ["a trailing slash", 404, "/oauth/token/", post(formOf(CREDENTIALS), basic(app))],
  ["the library's logout", 404, "/oauth/session/end/confirm", post(formOf({ logout: "yes" }))],
  ["POST at the key set", 405, "/oauth/jwks", { method: "POST" }],
  ["POST at the metadata", 405, "/.well-known/openid-configuration", { method: "POST" }],
  ["metadata of an unknown resource", 404, "/.well-known/oauth-protected-resource/nothing"],
];

async function assertJsonError(t: ExecutionContext, [what, status, path, init]: Failure) {
  for (const [who, accept] of Object.entries(ACCEPTS)) {
    const headers = { ...(init?.headers as Record<string, string>), accept };
    const answer = await read(fetch(service.url + path, { ...init, headers }));
    t.is(answer.status, status, `${what}, ${who}: ${answer.text}`);
    t.regex(answer.headers.get("content-type") ?? "", /^application\/(problem\+)?json/, `${what}, ${who}`);
    t.is(typeof (answer.body.error ?? answer.body.code), "string", answer.text);
  }
}

for (const failure of FAILURES) {
  const [what, status] = failure;
  test(`${what} gets ${status} in JSON for every Accept header`, assertJsonError, failure);
}

for (const [what, url, init] of [
  ["an expired request", `${service.url}/oauth/authorize/nothing`],
  ["an oversized form", `${service.url}/oauth/authorize`, post(formOf({ x: "x".repeat(60_000) }))],
] as [string, string, RequestInit?][]) {
  test(`in a browser, ${what} at the authorization endpoint gets a page`, async (t) => {
    const { status, headers, text } = await read(fetch(url, { ...init, headers: BROWSER }));
    t.true(status >= 400 && status < 500, String(status));
    t.regex(headers.get("content-type") ?? "", /^text\/html/);
    t.regex(text, /<h1>/);
  });
}

test.serial("too many failed authentications get 429 in JSON for every Accept header", async (t) => {
  const { app: guessed } = await createApp(service);
  // Sends a browser's header, because the limit reads the error code from the JSON body.
  const headers = { ...basic({ ...guessed, clientSecret: "lgs_wrong" }), ...BROWSER };
  const guess = post(formOf(CREDENTIALS), headers);
  let { status } = await fetch(`${service.url}/oauth/token`, guess);
  for (let guesses = 1; guesses < 60 && status !== 429; guesses++)
    ({ status } = await fetch(`${service.url}/oauth/token`, guess));
  await assertJsonError(t, ["a guess", 429, "/oauth/token", guess]);
});

test.serial("a server error gets 500 in JSON for every Accept header", async (t) => {
  await knex.schema.renameTable("clients", "gone");
  t.teardown(() => knex.schema.renameTable("gone", "clients"));
  for (const endpoint of ENDPOINTS) {
    const request = post(formOf(CREDENTIALS), basic(app));
    await assertJsonError(t, [endpoint, 500, `/oauth/${endpoint}`, request]);
  }
});
