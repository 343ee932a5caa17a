import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import { refuseRedirectUris } from "../../server/redirect-uris.ts";
import { allow, ask, authorizeUrl } from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";

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
  "https://192.0.2.1/cb",
  "https://[2001:db8::1]/cb",
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
  "vscode://vscode.github-authentication/did-authenticate",
];

for (const uri of ACCEPTED) {
  test.serial(`${uri} is accepted; the client goes on working, and people are sent there`, async (t) => {
    t.deepEqual(refuseRedirectUris([uri]), []);
    await service.storage.clients.setRedirectUris(app.id, [uri], OPERATOR);
    const token = await ask(service, "token", app, { grant_type: "client_credentials" });
    t.is(token.status, 200, token.text);
    const callback = await allow(service, user, authorizeUrl(service, app, { redirect_uri: uri }));
    t.truthy(callback.searchParams.get("code"), callback.href);
    t.true(new URL(callback).href.startsWith(new URL(uri).href.replace(/\?$/, "").split("?")[0] ?? "-"));
  });
}

test.serial("20 at a time are accepted, and the client goes on working", async (t) => {
  const uris = ACCEPTED.slice(0, 20);
  t.deepEqual(refuseRedirectUris(uris), []);
  await service.storage.clients.setRedirectUris(app.id, uris, OPERATOR);
  t.is((await ask(service, "token", app, { grant_type: "client_credentials" })).status, 200);
});

test.serial("without any, client credentials work and nothing else", async (t) => {
  t.deepEqual(refuseRedirectUris([]), []);
  await service.storage.clients.setRedirectUris(app.id, [], OPERATOR);
  t.is((await ask(service, "token", app, { grant_type: "client_credentials" })).status, 200);
  const answer = await fetch(authorizeUrl(service, app), { redirect: "manual" });
  t.is(answer.status, 400);
});

const REFUSED: [number: number, uri: string][] = [
  [13, "http://app.example.com/callback"],
  [13, "http://192.0.2.1/callback"],
  [13, "http://127.0.0.2/callback"],
  [13, "http://0.0.0.0/callback"],
  [13, "http://localhost.example.com/callback"],
  [13, "http://localhost@evil.example/callback"],
  [13, "https://localhost/callback"],
  [13, "https://127.0.0.1/callback"],
  [13, "https://[::1]/callback"],
  [13, "javascript:alert(1)"],
  [13, "JavaScript:alert(1)"],
  [13, "java\tscript:alert(1)"],
  [13, "data:text/html,x"],
  [13, "vbscript:x"],
  [13, "file:///etc/passwd"],
  [13, "blob:https://app.example.com/x"],
  [13, "about:blank"],
  [13, "view-source:https://app.example.com"],
  [13, "ws://app.example.com"],
  [13, "ftp://app.example.com"],
  [13, "mailto:a@example.com"],
  [13, "intent://x#Intent;end"],
  [13, "https://*.example.com/callback"],
  [13, "https://app.example.com/*"],
  [13, "https://user@app.example.com/"],
  [13, "https://user:pass@app.example.com/"],
  [13, "https://app.example.com\\@evil.example/"],
  [13, "https://app.example.com/a b"],
  [13, " https://app.example.com/"],
  [13, "https://app.example.com/\u0000"],
  [13, "https://app.example.com/\r\nx"],
  [13, "https://bücher.example/"],
  [13, `https://app.example.com/${"x".repeat(2048)}`],
  [13, "https://"],
  [13, "https://app.example.com:99999/"],
  [14, "https://app.example.com/#f"],
  [14, "https://app.example.com/#"],
  [14, "com.example.app:/cb#x"],
  [14, "/callback"],
  [14, "//app.example.com/callback"],
  [14, "app.example.com/callback"],
  [14, "callback"],
  [14, ""],
  [14, "?x=1"],
];

for (const [number, uri] of REFUSED) {
  test(`sec ${number}: ${JSON.stringify(uri.slice(0, 60))} is refused where it is set`, (t) => {
    const [refusal, ...others] = refuseRedirectUris([uri]);
    t.is(refusal?.index, 0);
    t.true((refusal?.message.length ?? 0) > 10);
    t.deepEqual(others, []);
  });
}

test("each wrong one of a list is named, doubles and too many as well", (t) => {
  const good = "https://app.example.com/";
  t.deepEqual(
    refuseRedirectUris([good, "http://x.example/", good, "x"]).map(({ index }) => index),
    [1, 2, 3],
  );
  const many = Array.from({ length: 21 }, (_, index) => `https://app.example.com/${index}`);
  t.is(refuseRedirectUris(many).length, 1);
});
