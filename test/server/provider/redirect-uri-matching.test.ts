import test from "ava";
import { allow, authorizeUrl, createApp, redeemCode } from "../../harness/clients/oauth.ts";
import { startTestService } from "../../harness/service.ts";

const REGISTERED = "https://app.example.com/cb/a";

const service = await startTestService();
const { app, user } = await createApp(service, [REGISTERED, "http://127.0.0.1/cb"]);
test.after.always(() => service.close());

/** Variations of the registered URI. */
const VARIATIONS = [
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

async function request(url: string) {
  const response = await fetch(url, { redirect: "manual" });
  return { status: response.status, location: response.headers.get("location"), text: await response.text() };
}

for (const uri of VARIATIONS) {
  test(`the unregistered ${JSON.stringify(uri)} is rejected without a redirect`, async (t) => {
    const { status, location, text } = await request(authorizeUrl(service, app, { redirect_uri: uri }));
    t.is(status, 400);
    t.is(location, null);
    t.regex(text, /^<!doctype html>/);
  });
}

const LOOPBACK_VARIATIONS = [
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

for (const uri of LOOPBACK_VARIATIONS) {
  test(`the loopback URI ${uri}, which differs in more than its port, is rejected`, async (t) => {
    const { status, location } = await request(authorizeUrl(service, app, { redirect_uri: uri }));
    t.is(status, 400);
    t.is(location, null);
  });
}

test("a loopback redirect URI matches with any port", async (t) => {
  for (const uri of ["http://127.0.0.1:1024/cb", "http://127.0.0.1:65535/cb", "http://127.0.0.1/cb"]) {
    const callback = await allow(service, user, authorizeUrl(service, app, { redirect_uri: uri }));
    t.is(callback.href.split("?")[0], uri, uri);
    t.truthy(callback.searchParams.get("code"), uri);
  }
});

test("any port matches for each name of the loopback interface", async (t) => {
  for (const host of ["localhost", "127.0.0.1", "[::1]"]) {
    const native = await createApp(service, [`http://${host}:3000/cb`]);
    for (const port of ["", ":3000", ":50123"]) {
      const uri = `http://${host}${port}/cb`;
      const callback = await allow(
        service,
        native.user,
        authorizeUrl(service, native.app, { redirect_uri: uri }),
      );
      t.is(callback.href.split("?")[0], uri);
      t.truthy(callback.searchParams.get("code"), uri);
    }
  }
});

for (const registered of ["http://127.0.0.1:33418", "http://127.0.0.1:33418/"]) {
  test(`${registered} matches with and without the trailing slash, in both requests`, async (t) => {
    const native = await createApp(service, [registered]);
    const variants = [
      "http://127.0.0.1:33418",
      "http://127.0.0.1:33418/",
      "http://127.0.0.1:5000",
      undefined,
    ];
    for (const redirect_uri of variants) {
      const url = authorizeUrl(service, native.app, { redirect_uri });
      const callback = await allow(service, native.user, url);
      t.is(callback.pathname, "/");
      const code = String(callback.searchParams.get("code"));
      const again = redirect_uri?.endsWith("/")
        ? redirect_uri.slice(0, -1)
        : `${redirect_uri ?? registered}/`;
      const sent = again.replace(/\/+$/, "/");
      t.is((await redeemCode(service, native.app, code, { redirect_uri: sent })).status, 200, sent);
    }
    for (const wrong of ["http://127.0.0.1:33418//", "http://127.0.0.1:33418/x", "http://localhost:33418"]) {
      const { status, location } = await request(authorizeUrl(service, native.app, { redirect_uri: wrong }));
      t.is(status, 400, wrong);
      t.is(location, null, wrong);
    }
  });
}

test("an https redirect URI matches only as it is registered, also without a path", async (t) => {
  const web = await createApp(service, ["https://app.example.com/", "https://other.example.com"]);
  for (const uri of ["https://app.example.com", "https://other.example.com/"]) {
    t.is((await request(authorizeUrl(service, web.app, { redirect_uri: uri }))).status, 400, uri);
  }
});

const INVALID_CLIENTS: [string, Record<string, string | string[] | undefined>][] = [
  ["no client_id", { client_id: undefined }],
  ["an unknown client_id", { client_id: "lgc_nobody" }],
  ["an upper-case client_id", { client_id: app.clientId.toUpperCase() }],
  ["a client_id with a trailing space", { client_id: `${app.clientId} ` }],
  ["a client_id with a NUL", { client_id: `${app.clientId}\u0000` }],
  ["a client_id of 10 KB", { client_id: "x".repeat(10_000) }],
  ["a repeated client_id", { client_id: [app.clientId, "lgc_nobody"] }],
  ["no redirect_uri for a client with two", { redirect_uri: undefined }],
  ["a repeated redirect_uri", { redirect_uri: [REGISTERED, "https://evil.example/"] }],
  ["the dashboard's client", { client_id: "dashboard", redirect_uri: REGISTERED }],
];

for (const [what, changes] of INVALID_CLIENTS) {
  test(`a request with ${what} gets an error page and no redirect`, async (t) => {
    const { status, location, text } = await request(
      authorizeUrl(service, app, { redirect_uri: REGISTERED, ...changes }),
    );
    t.is(status, 400);
    t.is(location, null);
    t.regex(text, /^<!doctype html>/);
  });
}

test("a client without redirect URIs can't use the authorization endpoint", async (t) => {
  const bare = await service.createOrganization();
  const { status, location } = await request(authorizeUrl(service, bare));
  t.is(status, 400);
  t.is(location, null);
});

test("a client with one redirect URI may omit it", async (t) => {
  const { app: single, user: owner } = await createApp(service, [REGISTERED]);
  const callback = await allow(service, owner, authorizeUrl(service, single, { redirect_uri: undefined }));
  t.true(callback.href.startsWith(`${REGISTERED}?`));
});
