import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import test, { type ExecutionContext } from "ava";
import { authorizeUrl, createApp, formOf, read } from "../../harness/clients/oauth.ts";
import { advanceClock } from "../../harness/clock.ts";
import { type Publication, startPublisher } from "../../harness/publisher.ts";
import { postForm, startTestService, type TestService } from "../../harness/service.ts";

const CLAUDE = "https://claude.ai/oauth/mcp-oauth-client-metadata";
const CLAUDE_REDIRECT = "https://claude.ai/api/mcp/auth_callback";
const NEW_REDIRECT = "https://claude.ai/api/mcp/new_callback";

const publisher = await startPublisher(["docs.example", "claude.ai"]);
const start = (CIMD: string) => startTestService({ ...publisher.settings, CIMD }, publisher.connections);
const known = await startTestService(publisher.settings, publisher.connections);
const any = await start("any");
const off = await start("off");
const { app } = await createApp(any);
// A listener at the URL of the metadata documents, which must never receive a byte.
let received = 0;
const site = createServer((socket) => {
  socket
    .on("error", () => {})
    .on("data", () => {
      received += 1;
      socket.destroy();
    });
}).listen(0, "127.0.0.1");
await once(site, "listening");
const { port } = site.address() as AddressInfo;
test.after.always(async () => {
  site.close();
  publisher.close();
  await Promise.all([known, any, off].map((service) => service.close()));
});

let count = 0;
/** Publishes a document at a new URL, which is the client id. */
function publish(fields: object, publication: Partial<Publication> = {}): string {
  const client_id = `https://docs.example/clients/${++count}.json`;
  const document = { client_id, client_name: "An app", redirect_uris: ["https://docs.example/callback"] };
  publisher.publish(client_id, { body: { ...document, ...fields }, ...publication });
  return client_id;
}

/** Starts an authorization; a valid one is redirected to the sign-in page. */
async function authorize(
  service: TestService,
  clientId: string,
  redirect_uri = "https://docs.example/callback",
) {
  const url = authorizeUrl(service, { clientId }, { redirect_uri });
  const response = await fetch(url, { redirect: "manual" });
  return { isAccepted: response.status === 303, status: response.status, text: await response.text() };
}

async function isRejected(t: ExecutionContext, answer: ReturnType<typeof authorize>) {
  const { status, isAccepted, text } = await answer;
  t.false(isAccepted);
  t.true(status >= 400 && status < 500, `${status} ${text}`);
}

for (const [setting, service] of Object.entries({ known, any })) {
  test(`with CIMD=${setting}, discovery lists metadata documents and their authentication methods`, async (t) => {
    const { body } = await read(fetch(`${service.url}/.well-known/oauth-authorization-server`));
    t.true(body.client_id_metadata_document_supported);
    const methods = body.token_endpoint_auth_methods_supported as string[];
    t.true(methods.includes("none"));
    t.true(methods.includes("private_key_jwt"));
    t.true((body.token_endpoint_auth_signing_alg_values_supported as string[]).includes("RS256"));
  });
}

test("with CIMD=off, discovery omits them, and no such client is known", async (t) => {
  const { body } = await read(fetch(`${off.url}/.well-known/oauth-authorization-server`));
  t.falsy(body.client_id_metadata_document_supported);
  const methods = ["client_secret_basic", "client_secret_post", "private_key_jwt"];
  t.deepEqual(body.token_endpoint_auth_methods_supported, methods);
  await isRejected(t, authorize(off, publish({})));
  await isRejected(t, authorize(off, CLAUDE, CLAUDE_REDIRECT));
  await isRejected(t, authorize(off, `https://127.0.0.1:${port}/client.json`));
  t.is(received, 0);
});

test.serial(
  "with CIMD=known, which is the default, a known client is accepted without a request",
  async (t) => {
    publisher.requests.length = 0;
    t.true((await authorize(known, CLAUDE, CLAUDE_REDIRECT)).isAccepted);
    t.deepEqual(publisher.requests, []);
  },
);

test.serial("with CIMD=known, any other document is rejected without a request", async (t) => {
  publisher.requests.length = 0;
  await isRejected(t, authorize(known, publish({})));
  await isRejected(t, authorize(known, `${CLAUDE}?x`, CLAUDE_REDIRECT));
  await isRejected(t, authorize(known, CLAUDE.replace("claude", "Claude"), CLAUDE_REDIRECT));
  t.deepEqual(publisher.requests, []);
});

test.serial("with CIMD=known and the URL of a document, that one is fetched and no other", async (t) => {
  const added = publish({});
  const service = await start(`known, ${added}`);
  t.teardown(() => service.close());
  publisher.requests.length = 0;
  t.true((await authorize(service, added)).isAccepted);
  await isRejected(t, authorize(service, publish({})));
  t.true((await authorize(service, CLAUDE, CLAUDE_REDIRECT)).isAccepted);
  t.deepEqual(publisher.requests, [added]);
});

for (const redirectUri of [
  NEW_REDIRECT,
  `${CLAUDE_REDIRECT}/`,
  "https://evil.example/",
  "http://localhost/callback",
]) {
  test(`a known client can't be called back at ${redirectUri}`, async (t) => {
    await isRejected(t, authorize(known, CLAUDE, redirectUri));
  });
}

test.serial("with CIMD=any, a document is fetched once for several requests", async (t) => {
  const clientId = publish({});
  for (let request = 0; request < 3; request += 1) t.true((await authorize(any, clientId)).isAccepted);
  t.is(publisher.requests.filter((url) => url === clientId).length, 1);
});

const BROKEN: Record<string, Publication> = {
  "is answered with 403": { status: 403, body: "<h1>Are you a robot?</h1>" },
  "is a web page": { body: "<h1>Hello</h1>", headers: { "content-type": "text/html" } },
  "is not JSON": { body: "{" },
  "names another client": { body: { client_id: "https://claude.ai/other" } },
};
for (const [fault, publication] of Object.entries(BROKEN)) {
  test.serial(`with CIMD=any, a known client keeps its copy if its document ${fault}`, async (t) => {
    const service = await start("any");
    t.teardown(() => service.close());
    publisher.publish(CLAUDE, publication);
    publisher.requests.length = 0;
    t.true((await authorize(service, CLAUDE, CLAUDE_REDIRECT)).isAccepted);
    t.deepEqual(publisher.requests, [CLAUDE]);
  });
}

test.serial("with CIMD=any, the published document of a known client replaces its copy", async (t) => {
  const service = await start("any");
  t.teardown(() => service.close());
  const body = { client_id: CLAUDE, client_name: "Claude", redirect_uris: [NEW_REDIRECT] };
  publisher.publish(CLAUDE, { body });
  t.true((await authorize(service, CLAUDE, NEW_REDIRECT)).isAccepted);
  await isRejected(t, authorize(service, CLAUDE, CLAUDE_REDIRECT));
});

const KEYS = { token_endpoint_auth_method: "private_key_jwt", token_endpoint_auth_signing_alg: "RS256" };
const ACCEPTED: Record<string, [object, Partial<Publication>?]> = {
  "scopes of other servers": [{ scope: "files:read offline_access" }],
  "grant types that this server doesn't have": [
    { grant_types: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"] },
  ],
  "client credentials besides the code flow": [{ grant_types: ["client_credentials", "authorization_code"] }],
  "response types that this server doesn't have": [{ response_types: ["code", "token"] }],
  "redirect URIs that this server doesn't allow": [
    { redirect_uris: ["http://docs.example/", "https://docs.example/callback", "javascript:alert(1)"] },
  ],
  "a sector identifier": [{ sector_identifier_uri: `https://127.0.0.1:${port}/` }],
  "unknown fields": [{ x_future: { nested: true }, logo_uri: "http://docs.example/" }],
  "keys at a URL": [{ ...KEYS, jwks_uri: "https://docs.example/jwks.json" }],
  "a parameter in its content type": [{}, { headers: { "content-type": "application/json; charset=utf-8" } }],
  "a content type for JSON": [{}, { headers: { "content-type": "application/vnd.client+json" } }],
};
for (const [what, [fields, publication]] of Object.entries(ACCEPTED)) {
  test.serial(`a document with ${what} is accepted`, async (t) => {
    const { isAccepted, text } = await authorize(any, publish(fields, publication));
    t.true(isAccepted, text);
    t.is(received, 0);
  });
}

const REJECTED: Record<string, [object, Partial<Publication>?]> = {
  "of another client": [{ client_id: "https://docs.example/other.json" }],
  "without redirect URIs": [{ redirect_uris: undefined }],
  "with unusable redirect URIs only": [{ redirect_uris: ["http://docs.example/callback"] }],
  "with client credentials only": [{ grant_types: ["client_credentials"] }],
  "with refresh tokens only": [{ grant_types: ["refresh_token"], response_types: [] }],
  "with a secret": [{ client_secret: "x".repeat(40) }],
  "that authenticates with a secret": [{ token_endpoint_auth_method: "client_secret_post" }],
  "that authenticates with a certificate": [{ token_endpoint_auth_method: "tls_client_auth" }],
  "that authenticates without keys": [KEYS],
  "with keys on this computer": [{ ...KEYS, jwks_uri: `https://127.0.0.1:${port}/jwks.json` }],
  "with keys over http": [{ ...KEYS, jwks_uri: "http://docs.example/jwks.json" }],
  "with a symmetric algorithm": [{ ...KEYS, jwks: { keys: [] }, token_endpoint_auth_signing_alg: "HS256" }],
  "as a web page": [{}, { headers: { "content-type": "text/html" } }],
  "as plain text": [{}, { headers: { "content-type": "text/plain" } }],
  "as a list": [{}, { body: [] }],
  "that is not JSON": [{}, { body: "client" }],
  "of more than 5 KB": [{ client_uri: `https://docs.example/${"x".repeat(5 * 1024)}` }],
  "that is missing": [{}, { status: 404 }],
  "that moved": [{}, { status: 302, headers: { location: "https://docs.example/clients/1.json" } }],
};
for (const [what, [fields, publication]] of Object.entries(REJECTED)) {
  test.serial(`a document ${what} is rejected, and not fetched again by the next request`, async (t) => {
    const clientId = publish(fields, publication);
    for (let request = 0; request < 3; request += 1) await isRejected(t, authorize(any, clientId));
    t.is(publisher.requests.filter((url) => url === clientId).length, 1);
    t.is(received, 0);
  });
}

test.serial("a document that was rejected is fetched again half a minute later", async (t) => {
  const clientId = publish({}, { status: 503 });
  await isRejected(t, authorize(any, clientId));
  const body = { client_id: clientId, redirect_uris: ["https://docs.example/callback"] };
  publisher.publish(clientId, { body });
  await isRejected(t, authorize(any, clientId));
  advanceClock(31_000);
  const { isAccepted, text } = await authorize(any, clientId);
  t.true(isAccepted, text);
});

test.serial("a host that hangs gets one request per document, and twenty at a time", async (t) => {
  const hanging = Array.from({ length: 20 }, () => publish({}, { hangs: true }));
  const pending = hanging.flatMap((clientId) => [authorize(any, clientId), authorize(any, clientId)]);
  await Promise.all(hanging.map((clientId) => publisher.waitFor(clientId)));
  const next = publish({});
  const { isAccepted, text } = await authorize(any, next);
  t.false(isAccepted);
  t.regex(text, /too many documents are being fetched/);
  await Promise.all(pending.map((answer) => isRejected(t, answer)));
  for (const clientId of hanging) t.is(publisher.requests.filter((url) => url === clientId).length, 1);
  t.false(publisher.requests.includes(next));
  t.true((await authorize(any, next)).isAccepted, "which isn't remembered");
});

test.serial("the error page says what is wrong with a document", async (t) => {
  const { text } = await authorize(any, publish({ grant_types: ["client_credentials"] }));
  t.regex(text, /client_id metadata document fetch failed: grant_types must contain authorization_code/);
  t.regex((await authorize(any, publish({}, { status: 404 }))).text, /the document was answered with 404/);
});

test.serial("a client with a document gets no token for itself", async (t) => {
  const clientId = publish({ grant_types: ["client_credentials", "authorization_code"] });
  const fields = { grant_type: "client_credentials", client_id: clientId };
  const { status, body } = await read(postForm(`${any.url}/oauth/token`, fields));
  t.is(status, 400);
  t.is(body.error, "unauthorized_client");
});

const LOCAL = [
  `http://127.0.0.1:${port}/client.json`,
  `https://127.0.0.1:${port}/client.json`,
  `https://localhost:${port}/client.json`,
  `https://[::1]:${port}/client.json`,
  `https://[::ffff:127.0.0.1]:${port}/client.json`,
  `https://2130706433:${port}/client.json`,
  "https://10.0.0.1/client.json",
  "https://169.254.169.254/latest/meta-data",
  "https://user@127.0.0.1/client.json",
  "https://127.0.0.1/",
  "https://127.0.0.1/client.json#x",
  "https://127.0.0.1/../client.json",
];
for (const clientId of LOCAL) {
  test(`a metadata document at ${clientId.replace(String(port), "…")} is not fetched, and its client is rejected`, async (t) => {
    await isRejected(t, authorize(any, clientId));
    const fields = formOf({ grant_type: "client_credentials", client_id: clientId });
    const token = await read(postForm(`${any.url}/oauth/token`, fields));
    t.true(token.status === 400 || token.status === 401, token.text);
    t.is(received, 0);
  });
}

test("clients of organizations still need their secret", async (t) => {
  const fields = { grant_type: "client_credentials", client_id: app.clientId };
  t.is((await read(postForm(`${any.url}/oauth/token`, fields))).status, 401);
  t.regex(await any.token(app), /^lga_/);
});
