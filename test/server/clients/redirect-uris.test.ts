import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { validateRedirectUris } from "../../../server/clients/redirect-uris.ts";
import { allow, authorizeUrl, postAsClient } from "../../harness/clients/oauth.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const own = await service.createOrganization();
const user = await service.createUser([own.id]);
test.after.always(() => service.close());

const ACCEPTED = [
  "https://app.example.com",
  "https://app.example.com/",
  "https://app.example.com/callback",
  "https://app.example.com:8443/callback",
  "https://app.example.com/callback?tenant=a",
  "https://app.example.com/callback?",
  "https://app.example.com/a/../b",
  "https://app.example.com/%61",
  "https://APP.example.com/Callback",
  "https://xn--bcher-kva.example/cb",
  "https://app.example.com./cb",
  "https://localhost.example.com/cb",
  "http://localhost",
  "http://localhost/callback",
  "http://localhost:3000/callback",
  "http://127.0.0.1/callback",
  "http://127.0.0.1:8080/callback",
  "http://[::1]/callback",
  "http://[::1]:8080/callback",
  "com.example.app:/oauth/callback",
  "com.example.app:/",
  "com.example.app://callback",
  "com.example.app://callback/path?x=1",
  "cursor://anysphere.cursor-retrieval/oauth/callback",
  "cursor://anysphere.cursor-mcp/oauth/callback",
];

for (const uri of ACCEPTED) {
  test.serial(`${uri} is accepted, and the code is sent there`, async (t) => {
    t.deepEqual(validateRedirectUris([uri]), []);
    await service.storage.clients.setRedirectUris(app.id, [uri], OPERATOR);
    const token = await postAsClient(service, "token", app, { grant_type: "client_credentials" });
    t.is(token.status, 200, token.text);
    const callback = await allow(service, user, authorizeUrl(service, app, { redirect_uri: uri }));
    t.truthy(callback.searchParams.get("code"), callback.href);
    t.true(new URL(callback).href.startsWith(new URL(uri).href.replace(/\?$/, "").split("?")[0] ?? "-"));
  });
}

test.serial("a client may have 20 redirect URIs", async (t) => {
  const uris = ACCEPTED.slice(0, 20);
  t.deepEqual(validateRedirectUris(uris), []);
  await service.storage.clients.setRedirectUris(app.id, uris, OPERATOR);
  t.is((await postAsClient(service, "token", app, { grant_type: "client_credentials" })).status, 200);
});

test.serial("without redirect URIs only client credentials work", async (t) => {
  t.deepEqual(validateRedirectUris([]), []);
  await service.storage.clients.setRedirectUris(app.id, [], OPERATOR);
  t.is((await postAsClient(service, "token", app, { grant_type: "client_credentials" })).status, 200);
  const answer = await fetch(authorizeUrl(service, app), { redirect: "manual" });
  t.is(answer.status, 400);
});

const REJECTED: string[] = [
  // Operating systems start programs with them.
  "ms-msdt:/id",
  "microsoft-edge:https://app.example.com/",
  "smb://files.example.com/share",
  "vscode://vscode.github-authentication/did-authenticate",
  "cursor://another.extension/callback",
  "myapp:/callback",
  "https://192.0.2.1/callback",
  "https://192.0.2.1./callback",
  "https://0x7f000001/callback",
  "https://[2001:db8::1]/callback",
  "http://app.example.com/callback",
  "http://192.0.2.1/callback",
  "http://127.0.0.2/callback",
  "http://0.0.0.0/callback",
  "http://localhost.example.com/callback",
  "http://localhost@evil.example/callback",
  "https://localhost/callback",
  "https://127.0.0.1/callback",
  "https://[::1]/callback",
  "javascript:alert(1)",
  "JavaScript:alert(1)",
  "java\tscript:alert(1)",
  "data:text/html,x",
  "vbscript:x",
  "file:///etc/passwd",
  "blob:https://app.example.com/x",
  "about:blank",
  "view-source:https://app.example.com",
  "ws://app.example.com",
  "ftp://app.example.com",
  "mailto:a@example.com",
  "intent://x#Intent;end",
  "https://*.example.com/callback",
  "https://app.example.com/*",
  "https://user@app.example.com/",
  "https://user:pass@app.example.com/",
  "https://app.example.com\\@evil.example/",
  "https://app.example.com/a b",
  " https://app.example.com/",
  "https://app.example.com/\u0000",
  "https://app.example.com/\r\nx",
  "https://bücher.example/",
  `https://app.example.com/${"x".repeat(2048)}`,
  "https://",
  "https://app.example.com:99999/",
  "https://app.example.com/#f",
  "https://app.example.com/#",
  "com.example.app:/cb#x",
  "/callback",
  "//app.example.com/callback",
  "app.example.com/callback",
  "callback",
  "",
  "?x=1",
];

for (const uri of REJECTED) {
  test(`${JSON.stringify(uri.slice(0, 60))} is rejected when it is set`, (t) => {
    const [error, ...others] = validateRedirectUris([uri]);
    t.is(error?.index, 0);
    t.regex(error?.message ?? "", /^must /);
    t.deepEqual(others, []);
  });
}

test("each invalid URI of a list is reported, including duplicates and too many", (t) => {
  const good = "https://app.example.com/";
  t.deepEqual(
    validateRedirectUris([good, "http://x.example/", good, "x"]).map(({ index }) => index),
    [1, 2, 3],
  );
  const many = Array.from({ length: 21 }, (_, index) => `https://app.example.com/${index}`);
  t.is(validateRedirectUris(many).length, 1);
});
