import test from "ava";
import { allow, authorizeUrl, createApp } from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";

const REGISTERED = "https://app.example.com/cb/a";

const service = await startTestService();
const { app, user } = await createApp(service, [REGISTERED, "http://127.0.0.1/cb"]);
test.after.always(() => service.close());

/** Each is near to a registered URI, and is not it. */
const MUTATIONS = [
  "https://app.example.com/cb/A",
  "https://APP.example.com/cb/a",
  "HTTPS://app.example.com/cb/a",
  "http://app.example.com/cb/a",
  "https://app.example.com:443/cb/a",
  "https://app.example.com:8443/cb/a",
  "https://app.example.com/cb/a/",
  "https://app.example.com/cb/%61",
  "https://app.example.com/cb/./a",
  "https://app.example.com/cb/../cb/a",
  "https://app.example.com/cb//a",
  "https://app.example.com/cb\\a",
  "https://app.example.com\\@evil.example/cb/a",
  "https://app.example.com@evil.example/cb/a",
  "https://user@app.example.com/cb/a",
  "https://app.example.com/cb/a?x=1",
  "https://app.example.com/cb/a?",
  "https://app.example.com/cb/a#x",
  "https://app.example.com/cb/a#",
  "https://app.example.com./cb/a",
  "https://app.example.com.evil.example/cb/a",
  "https://evil.example/https://app.example.com/cb/a",
  "https://app.example.com/cb/a%00",
  "https://app.example.com/cb/a%0d%0aSet-Cookie:x=y",
  " https://app.example.com/cb/a",
  "https://app.example.com/cb/a ",
  "https://app.example.com/cb/a\u0000",
  "//app.example.com/cb/a",
  "/cb/a",
  "app.example.com/cb/a",
  "https:app.example.com/cb/a",
  "https://app.example.com/cb",
  "javascript:alert(1)",
  "data:text/html,x",
];

async function refuse(url: string) {
  const response = await fetch(url, { redirect: "manual" });
  return { status: response.status, location: response.headers.get("location"), text: await response.text() };
}

for (const uri of MUTATIONS) {
  test(`sec 10, 11: ${JSON.stringify(uri)} is not the registered URI, and nobody is sent there`, async (t) => {
    const { status, location, text } = await refuse(authorizeUrl(service, app, { redirect_uri: uri }));
    t.is(status, 400);
    t.is(location, null);
    t.regex(text, /^<!doctype html>/);
  });
}

const LOOPBACK_MUTATIONS = [
  "http://localhost/cb",
  "http://localhost:5000/cb",
  "http://[::1]:5000/cb",
  "http://127.0.0.2:5000/cb",
  "http://127.1:5000/cb",
  "http://2130706433/cb",
  "https://127.0.0.1:5000/cb",
  "http://127.0.0.1:5000/cb/",
  "http://127.0.0.1:5000/CB",
  "http://127.0.0.1:5000/cb?x=1",
  "http://127.0.0.1:5000@evil.example/cb",
  "http://x@127.0.0.1:5000/cb",
  "http://127.0.0.1:/cb#",
  "http://127.0.0.1:5000/cb#x",
  "http://127.0.0.1:99999/cb",
  "http://127.0.0.1.evil.example:5000/cb",
];

for (const uri of LOOPBACK_MUTATIONS) {
  test(`sec 10: on loopback only the port is free, so ${uri} is refused`, async (t) => {
    const { status, location } = await refuse(authorizeUrl(service, app, { redirect_uri: uri }));
    t.is(status, 400);
    t.is(location, null);
  });
}

test("sec 10: on loopback any port will do", async (t) => {
  for (const uri of ["http://127.0.0.1:1024/cb", "http://127.0.0.1:65535/cb", "http://127.0.0.1/cb"]) {
    const callback = await allow(service, user, authorizeUrl(service, app, { redirect_uri: uri }));
    t.is(callback.href.split("?")[0], uri);
    t.truthy(callback.searchParams.get("code"));
  }
});

const WITHOUT_CLIENT: [string, Record<string, string | string[] | undefined>][] = [
  ["no client_id", { client_id: undefined }],
  ["an unknown client_id", { client_id: "lgc_nobody" }],
  ["a client_id in another case", { client_id: app.clientId.toUpperCase() }],
  ["a client_id with a space behind it", { client_id: `${app.clientId} ` }],
  ["a client_id with a NUL", { client_id: `${app.clientId}\u0000` }],
  ["a client_id of 10 kB", { client_id: "x".repeat(10_000) }],
  ["client_id twice", { client_id: [app.clientId, "lgc_nobody"] }],
  ["no redirect_uri beside two registered ones", { redirect_uri: undefined }],
  ["redirect_uri twice", { redirect_uri: [REGISTERED, "https://evil.example/"] }],
  ["the client of the dashboard", { client_id: "dashboard", redirect_uri: REGISTERED }],
];

for (const [what, changes] of WITHOUT_CLIENT) {
  test(`sec 11: ${what} gets a page, not a redirect`, async (t) => {
    const { status, location, text } = await refuse(
      authorizeUrl(service, app, { redirect_uri: REGISTERED, ...changes }),
    );
    t.is(status, 400);
    t.is(location, null);
    t.regex(text, /^<!doctype html>/);
  });
}

test("sec 11: a client without redirect URIs has no authorization", async (t) => {
  const bare = await service.createOrganization();
  const { status, location } = await refuse(authorizeUrl(service, bare));
  t.is(status, 400);
  t.is(location, null);
});

test("the only registered URI may be left out", async (t) => {
  const { app: single, user: person } = await createApp(service, [REGISTERED]);
  const callback = await allow(service, person, authorizeUrl(service, single, { redirect_uri: undefined }));
  t.true(callback.href.startsWith(`${REGISTERED}?`));
});
