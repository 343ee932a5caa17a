import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import test, { type ExecutionContext } from "ava";
import { authorizeUrl, formOf } from "../harness/clients/authorization-request.ts";
import { outcomeOf, read } from "../harness/clients/oauth.ts";
import { advanceClock } from "../harness/clock.ts";
import { type Publication, startPublisher } from "../harness/publisher.ts";
import { postForm, startTestService, type TestService } from "../harness/service.ts";

const CLAUDE = "https://claude.ai/oauth/mcp-oauth-client-metadata";
const CLAUDE_REDIRECT = "https://claude.ai/api/mcp/auth_callback";
const NEW_REDIRECT = "https://claude.ai/api/mcp/new_callback";

const publisher = await startPublisher(["docs.example", "claude.ai"]);
const start = (CIMD: string) => startTestService({ ...publisher.settings, CIMD }, publisher.connections);
const known = await startTestService(publisher.settings, publisher.connections);
const any = await start("any");
const off = await start("off");
// No document may make the server connect to it.
let connections = 0;
const site = createServer((socket) => {
  connections += 1;
  socket.destroy();
}).listen(0, "127.0.0.1");
await once(site, "listening");
const { port } = site.address() as AddressInfo;
test.after.always(() => site.close());

let count = 0;
function publish(fields: object, publication: Partial<Publication> = {}): string {
  const client_id = `https://docs.example/clients/${++count}.json`;
  const document = { client_id, client_name: "An app", redirect_uris: ["https://docs.example/callback"] };
  publisher.publish(client_id, { body: { ...document, ...fields }, ...publication });
  return client_id;
}

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

test("discovery lists metadata documents and their authentication methods, by default, too", async (t) => {
  for (const { url } of [known, any]) {
    const { body } = await read(fetch(`${url}/.well-known/oauth-authorization-server`));
    t.true(body.client_id_metadata_document_supported);
    const methods = body.token_endpoint_auth_methods_supported as string[];
    t.true(methods.includes("none"));
    t.true(methods.includes("private_key_jwt"));
  }
});

test("with CIMD=off, discovery omits them, and no such client is known", async (t) => {
  const { body } = await read(fetch(`${off.url}/.well-known/oauth-authorization-server`));
  t.falsy(body.client_id_metadata_document_supported);
  const methods = ["client_secret_basic", "client_secret_post", "private_key_jwt"];
  t.deepEqual(body.token_endpoint_auth_methods_supported, methods);
  await isRejected(t, authorize(off, publish({})));
  await isRejected(t, authorize(off, CLAUDE, CLAUDE_REDIRECT));
  await isRejected(t, authorize(off, `https://127.0.0.1:${port}/client.json`));
  t.is(connections, 0);
});

test.serial("by default, only known clients are accepted, without a request", async (t) => {
  publisher.requests.length = 0;
  t.true((await authorize(known, CLAUDE, CLAUDE_REDIRECT)).isAccepted);
  await isRejected(t, authorize(known, publish({})));
  await isRejected(t, authorize(known, `${CLAUDE}?x`, CLAUDE_REDIRECT));
  await isRejected(t, authorize(known, CLAUDE.replace("claude", "Claude"), CLAUDE_REDIRECT));
  t.deepEqual(publisher.requests, []);
});

test.serial("with CIMD=known and the URL of a document, that one is fetched and no other", async (t) => {
  const added = publish({});
  const service = await start(`known, ${added}`);
  publisher.requests.length = 0;
  t.true((await authorize(service, added)).isAccepted);
  await isRejected(t, authorize(service, publish({})));
  t.true((await authorize(service, CLAUDE, CLAUDE_REDIRECT)).isAccepted);
  t.deepEqual(publisher.requests, [added]);
});

test.serial("with CIMD=any, a known client keeps its copy if its document is broken", async (t) => {
  const broken: Publication[] = [
    { status: 403, body: "<h1>Are you a robot?</h1>" },
    { body: "<h1>Hello</h1>", headers: { "content-type": "text/html" } },
    { body: { client_id: "https://claude.ai/other" } },
  ];
  for (const publication of broken) {
    const service = await start("any");
    publisher.publish(CLAUDE, publication);
    publisher.requests.length = 0;
    t.true((await authorize(service, CLAUDE, CLAUDE_REDIRECT)).isAccepted);
    t.deepEqual(publisher.requests, [CLAUDE]);
  }
});

test.serial("with CIMD=any, the published document of a known client replaces its copy", async (t) => {
  const service = await start("any");
  const body = { client_id: CLAUDE, client_name: "Claude", redirect_uris: [NEW_REDIRECT] };
  publisher.publish(CLAUDE, { body });
  t.true((await authorize(service, CLAUDE, NEW_REDIRECT)).isAccepted);
  await isRejected(t, authorize(service, CLAUDE, CLAUDE_REDIRECT));
});

const KEYS = { token_endpoint_auth_method: "private_key_jwt", token_endpoint_auth_signing_alg: "RS256" };
const GRANTS = ["client_credentials", "authorization_code", "urn:ietf:params:oauth:grant-type:device_code"];
const URIS = ["http://docs.example/", "https://docs.example/callback", "javascript:alert(1)"];
const JSON_TYPE = "application/vnd.client+json; charset=utf-8";
const ACCEPTED: Record<string, [object, Partial<Publication>?]> = {
  "scopes of other servers": [{ scope: "files:read offline_access" }],
  "grant types that this server doesn't allow": [{ grant_types: GRANTS }],
  "response types that this server doesn't have": [{ response_types: ["code", "token"] }],
  "redirect URIs that this server doesn't allow": [{ redirect_uris: URIS }],
  "unknown fields": [{ x_future: { nested: true }, logo_uri: "http://docs.example/" }],
  "keys at a URL": [{ ...KEYS, jwks_uri: "https://docs.example/jwks.json" }],
  "a content type for JSON": [{}, { headers: { "content-type": JSON_TYPE } }],
};
for (const [what, [fields, publication]] of Object.entries(ACCEPTED))
  test.serial(`a document with ${what} is accepted`, async (t) => {
    const { isAccepted, text } = await authorize(any, publish(fields, publication));
    t.true(isAccepted, text);
    t.is(connections, 0);
  });

const REJECTED: Record<string, [object, Partial<Publication>?]> = {
  "of another client": [{ client_id: "https://docs.example/other.json" }],
  "without redirect URIs": [{ redirect_uris: undefined }],
  "with unusable redirect URIs only": [{ redirect_uris: ["http://docs.example/callback"] }],
  "with client credentials only": [{ grant_types: ["client_credentials"] }],
  "with a secret": [{ client_secret: "x".repeat(40) }],
  "that authenticates with a secret": [{ token_endpoint_auth_method: "client_secret_post" }],
  "that authenticates without keys": [KEYS],
  "with keys on this computer": [{ ...KEYS, jwks_uri: `https://127.0.0.1:${port}/jwks.json` }],
  "with keys over http": [{ ...KEYS, jwks_uri: "http://docs.example/jwks.json" }],
  "with a symmetric algorithm": [{ ...KEYS, jwks: { keys: [] }, token_endpoint_auth_signing_alg: "HS256" }],
  "as a web page": [{}, { headers: { "content-type": "text/html" } }],
  "that is not JSON": [{}, { body: "client" }],
  "of more than 5 KB": [{ client_uri: `https://docs.example/${"x".repeat(5 * 1024)}` }],
  "that is missing": [{}, { status: 404 }],
  "that moved": [{}, { status: 302, headers: { location: "https://docs.example/clients/1.json" } }],
};
for (const [what, [fields, publication]] of Object.entries(REJECTED))
  test.serial(`a document ${what} is rejected, and not fetched again by the next request`, async (t) => {
    const clientId = publish(fields, publication);
    for (let request = 0; request < 3; request += 1) await isRejected(t, authorize(any, clientId));
    t.is(publisher.requests.filter((url) => url === clientId).length, 1);
    t.is(connections, 0);
  });

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

test.serial("the error page says what is wrong with a document", async (t) => {
  const { text } = await authorize(any, publish({ grant_types: ["client_credentials"] }));
  t.regex(text, /client_id metadata document fetch failed: grant_types must contain authorization_code/);
  t.regex((await authorize(any, publish({}, { status: 404 }))).text, /the document was answered with 404/);
});

test.serial("a client with a document gets no token for itself", async (t) => {
  const clientId = publish({ grant_types: ["client_credentials", "authorization_code"] });
  const fields = { grant_type: "client_credentials", client_id: clientId };
  t.is(await outcomeOf(read(postForm(`${any.url}/oauth/token`, fields))), "400 unauthorized_client");
});

const LOCAL = ["http", "https"].map((scheme) => `${scheme}://127.0.0.1:${port}/client.json`);

test("documents on this computer and in its network are not fetched, and their clients are rejected", async (t) => {
  for (const clientId of LOCAL) {
    await isRejected(t, authorize(any, clientId));
    const fields = formOf({ grant_type: "client_credentials", client_id: clientId });
    const token = await read(postForm(`${any.url}/oauth/token`, fields));
    t.true(token.status === 400 || token.status === 401, token.text);
  }
  t.is(connections, 0);
});
