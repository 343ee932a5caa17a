import test from "ava";
import { DEVICE_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import { codeFor, connectRegistered, openConsent } from "../harness/clients/authorization.ts";
import { authorizeUrl, type Fields } from "../harness/clients/authorization-request.ts";
import {
  isAcceptedByApi,
  outcomeOf,
  postRegistration,
  type RegisteredClient,
  read,
  redemptionOf,
  register,
  requestTokens,
} from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { OPERATOR, postForm, startTestService } from "../harness/service.ts";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const organization = await service.createOrganization();
const user = await service.createUser([organization.id], undefined, "owner");

const CALLBACK = "http://127.0.0.1/callback";
// They are websites or belong to apps, which an organization has to accept.
const accepting = await service.createOrganization();
await service.storage.organizationSettings.change(accepting.id, { allowedClients: "any" }, OPERATOR);
const acceptingUser = await service.createUser([accepting.id], undefined, "owner");

const start = (clientId: string, changes: Fields = {}) =>
  fetch(authorizeUrl(service, { clientId }, { redirect_uri: CALLBACK, ...changes }), { redirect: "manual" });
const registerExample = () => register(service, { client_name: "Example", redirect_uris: [CALLBACK] });

const CODE_FLOW = { grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] };

test("the response names the device grant only to a client that asked for it", async (t) => {
  const grantTypesOf = async (grant_types?: string[]) =>
    (await postRegistration(service, { redirect_uris: [CALLBACK], grant_types })).body.grant_types;
  t.deepEqual(await grantTypesOf(), CODE_FLOW.grant_types);
  t.deepEqual(await grantTypesOf([...CODE_FLOW.grant_types, DEVICE_GRANT]), [
    ...CODE_FLOW.grant_types,
    DEVICE_GRANT,
  ]);
});

test("a public client can't introspect its own token", async (t) => {
  const client = await registerExample();
  const { body } = await connectRegistered(service, client, user);
  const fields = { client_id: client.clientId, token: String(body.access_token) };
  const { status, body: refusal } = await read(postForm(`${service.url}/oauth/introspect`, fields));
  t.is(status, 401);
  t.like(refusal, {
    error: "invalid_client",
    error_description: "client authentication failed: public clients cannot introspect tokens",
    error_uri: `${service.url}/docs/errors/invalid_client`,
  });
});

test("a changed id, and one of another service, is unknown at every endpoint", async (t) => {
  const { clientId } = await registerExample();
  const other = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
  const changed = clientId.replace(/.$/, (last) => (last === "A" ? "B" : "A"));
  for (const [at, id] of [
    [service, changed],
    [other, clientId],
  ] as const) {
    const url = authorizeUrl(at, { clientId: id }, { redirect_uri: CALLBACK });
    const { status, headers } = await fetch(url, { redirect: "manual" });
    t.is(status, 400);
    t.is(headers.get("location"), null);
    const refused = [await requestTokens(at, { clientId: id }, REFRESH)];
    for (const endpoint of ["par", "revoke", "introspect"])
      refused.push(await read(postForm(`${at.url}/oauth/${endpoint}`, { client_id: id, token: "x" })));
    for (const { status, body } of refused) {
      t.is(`${status} ${body.error}`, "401 invalid_client");
      t.notRegex(String(body.error_description), /public clients/, "it is unknown, not forbidden");
    }
  }
});

test("a loopback redirect URI matches with any port, and nothing else does", async (t) => {
  const { clientId } = await registerExample();
  t.is((await start(clientId, { redirect_uri: "http://127.0.0.1:50123/callback" })).status, 303);
  for (const redirect_uri of [
    ...["http://localhost/callback", "http://127.0.0.1/callback/", "http://127.0.0.1/callback?x"],
    ...["https://127.0.0.1/callback", "https://evil.example/callback"],
  ])
    t.is((await start(clientId, { redirect_uri })).status, 400, redirect_uri);
});

test("a registered client can push a request with its redirect URI, and with no other", async (t) => {
  const { clientId } = await registerExample();
  const push = (redirect_uri: string) => {
    const [, query] = authorizeUrl(service, { clientId }, { redirect_uri }).split("?");
    return read(postForm(`${service.url}/oauth/par`, new URLSearchParams(query)));
  };
  t.is((await push(CALLBACK)).status, 201);
  const refused = await outcomeOf(push("https://evil.example/callback"));
  t.regex(refused, /^400 invalid_(request|redirect_uri)$/);
});

test("a user who cancels returns to any website that was registered", async (t) => {
  const redirect_uri = "https://agent.example.com/callback";
  const { clientId } = await register(service, { redirect_uris: [redirect_uri] });
  const browser = new TestBrowser(service.url);
  const url = authorizeUrl(service, { clientId }, { redirect_uri });
  const page = await openConsent(browser, acceptingUser, url);
  const { origin, pathname, searchParams } = new URL((await browser.press(page, "Cancel")).url);
  t.is(origin + pathname, redirect_uri);
  t.is(searchParams.get("error"), "access_denied");
});

const CODE = { code: "x", redirect_uri: CALLBACK, code_verifier: "x".repeat(43) };
const REFRESH = { grant_type: "refresh_token", refresh_token: "x" };
const REFUSED: [what: string, fields: Record<string, string>, error: string][] = [
  ["client credentials", { grant_type: "client_credentials" }, "unauthorized_client"],
  ["an unknown code", { grant_type: "authorization_code", ...CODE }, "invalid_grant"],
  ["a client secret", { ...REFRESH, client_secret: "x" }, "invalid_client"],
];

for (const [what, fields, error] of REFUSED)
  test(`a token request of a registered client with ${what} is refused with ${error}`, async (t) => {
    const { clientId } = await registerExample();
    const status = error === "invalid_client" ? 401 : 400;
    t.is(await outcomeOf(requestTokens(service, { clientId }, fields)), `${status} ${error}`);
  });

test("a registered client can neither redeem, refresh, introspect nor revoke what another one was issued", async (t) => {
  const owner = await registerExample();
  const other = await register(service, { client_name: "Other", redirect_uris: [CALLBACK] });
  const code = await codeFor(service, owner, user, { changes: { redirect_uri: CALLBACK } });
  const redemption = { ...redemptionOf(code), redirect_uri: CALLBACK };
  t.is((await requestTokens(service, other, redemption)).body.error, "invalid_grant");
  const anonymous = { ...redemption, client_id: undefined };
  t.is((await requestTokens(service, owner, anonymous)).body.error, "invalid_request");
  const { body } = await requestTokens(service, owner, redemption);
  const access = String(body.access_token);
  const fields = { grant_type: "refresh_token", refresh_token: String(body.refresh_token) };
  t.is((await requestTokens(service, other, fields)).body.error, "invalid_grant");
  const send = (endpoint: string, client: RegisteredClient, token: string) =>
    read(postForm(`${service.url}/oauth/${endpoint}`, { client_id: client.clientId, token }));
  t.is((await send("introspect", other, access)).body.error, "invalid_client");
  t.is((await send("revoke", other, access)).status, 200);
  t.true(await isAcceptedByApi(service, access));
  t.is((await send("revoke", owner, access)).status, 200);
  t.false(await isAcceptedByApi(service, access));
});

test("a registered client is asked for consent each time, also with an https redirect URI", async (t) => {
  const client = await register(service, {
    redirect_uris: ["https://chat.example.com/cb"],
    client_name: "<b>Chat</b> & friends",
  });
  const browser = new TestBrowser(service.url);
  await connectRegistered(service, client, acceptingUser, { browser });
  const page = await browser.open(authorizeUrl(service, client, { redirect_uri: client.redirectUri }));
  t.regex(page.text, /<h1>Allow /);
  t.true(page.html.text.includes("“<b>Chat</b> & friends”"), "its name is text");
});

const redirect_uris = [CALLBACK];
const METADATA = "/.well-known/oauth-authorization-server";

test("the metadata lists the registration endpoint, and public clients", async (t) => {
  const { body } = await read(fetch(service.url + METADATA));
  t.is(body.registration_endpoint, `${service.url}/oauth/register`);
  t.true((body.token_endpoint_auth_methods_supported as string[]).includes("none"));
});

test("by default, the endpoint does not exist and is not listed", async (t) => {
  const plain = await startTestService();
  t.is((await postRegistration(plain, { redirect_uris })).status, 404);
  t.false("registration_endpoint" in (await read(fetch(plain.url + METADATA))).body);
});

test("the response is uncached JSON that names what applies to the client", async (t) => {
  const { status, headers, body } = await postRegistration(service, {
    redirect_uris,
    client_name: " Example ",
    grant_types: ["authorization_code", "client_credentials"],
    token_endpoint_auth_method: "client_secret_basic",
    scope: "read write",
    jwks: { keys: [] },
    jwks_uri: "https://example.com/jwks",
    example_extension: "x",
  });
  t.is(status, 201);
  t.regex(headers.get("content-type") ?? "", /^application\/json/);
  t.is(headers.get("cache-control"), "no-store");
  const { client_id, client_id_issued_at, ...metadata } = body;
  t.regex(String(client_id), /^lgd_[A-Za-z0-9_-]+$/);
  t.true(Math.abs(Number(client_id_issued_at) - Date.now() / 1000) < 60);
  t.deepEqual(metadata, {
    client_name: "Example",
    redirect_uris,
    token_endpoint_auth_method: "none",
    ...CODE_FLOW,
    application_type: "native",
  });
});

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const LARGE = { redirect_uris, client_uri: "x".repeat(16_384) };
const INVALID: [what: string, body: unknown, outcome: string, headers?: object][] = [
  ["an empty body", "", "400 invalid_client_metadata"],
  ["no JSON", "{", "400 invalid_client_metadata"],
  ["no redirect URIs", {}, "400 invalid_redirect_uri"],
  ["a form", "redirect_uris=x", "415 invalid_request", FORM],
  ["more than 16 KB", LARGE, "413 invalid_request"],
];

for (const [what, body, outcome, headers] of INVALID)
  test(`a registration with ${what} is refused with ${outcome}`, async (t) => {
    const answer = await postRegistration(service, body, headers);
    t.is(`${answer.status} ${answer.body.error}`, outcome);
    t.deepEqual(Object.keys(answer.body), ["error", "error_description", "error_uri"]);
    t.is(answer.headers.get("cache-control"), "no-store");
  });
