import test, { type ExecutionContext } from "ava";
import { allow, shareApp } from "../harness/clients/authorization.ts";
import type { Fields } from "../harness/clients/authorization-request.ts";
import { authorizeUrl, createApp } from "../harness/clients/authorization-request.ts";
import { redeemCode } from "../harness/clients/oauth.ts";
import { words } from "../harness/words.ts";

const REGISTERED = "https://app.example.com/cb/a";

const { service, app } = await shareApp({}, [REGISTERED, "http://127.0.0.1/cb"]);

async function isRefused(t: ExecutionContext, changes: Fields, { clientId } = app): Promise<void> {
  const response = await fetch(authorizeUrl(service, { clientId }, changes), { redirect: "manual" });
  t.is(response.status, 400);
  t.is(response.headers.get("location"), null);
  t.regex(await response.text(), /^<!doctype html>/);
}

const UNREGISTERED = [
  ...words(`
    https://app.example.com/cb/A https://APP.example.com/cb/a HTTPS://app.example.com/cb/a
    http://app.example.com/cb/a https://app.example.com:443/cb/a https://app.example.com/cb/a/
    https://app.example.com/cb/%61 https://app.example.com/cb/../cb/a
    https://app.example.com\\@evil.example/cb/a https://app.example.com@evil.example/cb/a
    https://user@app.example.com/cb/a https://app.example.com/cb/a?x=1 https://app.example.com/cb/a?
    https://app.example.com/cb/a# https://app.example.com./cb/a https://app.example.com.evil.example/cb/a
    https://evil.example/https://app.example.com/cb/a https://app.example.com/cb/a%0d%0aSet-Cookie:x=y
    //app.example.com/cb/a /cb/a https://app.example.com/cb javascript:alert(1)`),
  ...[" https://app.example.com/cb/a", "https://app.example.com/cb/a\u0000"],
  // These differ from the loopback URI in more than the port.
  ...words(`
    http://localhost:5000/cb http://[::1]:5000/cb http://127.0.0.2:5000/cb http://127.1:5000/cb
    http://2130706433/cb https://127.0.0.1:5000/cb http://127.0.0.1:5000/cb/ http://127.0.0.1:5000/CB
    http://127.0.0.1:5000/cb?x=1 http://127.0.0.1:5000@evil.example/cb http://x@127.0.0.1:5000/cb
    http://127.0.0.1:5000/cb#x http://127.0.0.1:99999/cb http://127.0.0.1.evil.example:5000/cb`),
];

for (const uri of UNREGISTERED)
  test(`the unregistered ${JSON.stringify(uri)} is rejected without a redirect`, (t) =>
    isRefused(t, { redirect_uri: uri }));

test("any port matches for each name of the loopback interface", async (t) => {
  for (const host of ["localhost", "127.0.0.1", "[::1]"]) {
    const { app: native, user } = await createApp(service, [`http://${host}:3000/cb`]);
    for (const port of ["", ":3000", ":65535"]) {
      const uri = `http://${host}${port}/cb`;
      const callback = await allow(service, user, authorizeUrl(service, native, { redirect_uri: uri }));
      t.is(callback.href.split("?")[0], uri);
      t.truthy(callback.searchParams.get("code"), uri);
    }
  }
});

for (const registered of ["http://127.0.0.1:33418", "http://127.0.0.1:33418/"])
  test(`${registered} matches with and without the trailing slash, in both requests`, async (t) => {
    const { app: native, user } = await createApp(service, [registered]);
    for (const [first, second] of [
      ["http://127.0.0.1:33418", "http://127.0.0.1:33418/"],
      ["http://127.0.0.1:33418/", "http://127.0.0.1:33418"],
      ["http://127.0.0.1:5000", "http://127.0.0.1:5000/"],
      [undefined, "http://127.0.0.1:33418/"],
    ]) {
      const callback = await allow(service, user, authorizeUrl(service, native, { redirect_uri: first }));
      t.is(callback.pathname, "/");
      const code = String(callback.searchParams.get("code"));
      t.is((await redeemCode(service, native, code, { redirect_uri: second })).status, 200, second);
    }
    for (const wrong of ["http://127.0.0.1:33418//", "http://127.0.0.1:33418/x", "http://localhost:33418"])
      await isRefused(t, { redirect_uri: wrong }, native);
  });

const EVIL = "https://evil.example/";
const INVALID_CLIENTS: [string, Fields][] = [
  ["no client_id", { client_id: undefined }],
  ["an unknown client_id", { client_id: "lgc_nobody" }],
  ["a client_id of 10 KB", { client_id: "x".repeat(10_000) }],
  ["a repeated client_id", { client_id: [app.clientId, "lgc_nobody"] }],
  ["no redirect_uri for a client with two", { redirect_uri: undefined }],
  ["a repeated redirect_uri", { redirect_uri: [REGISTERED, EVIL] }],
  ["another redirect_uri and prompt=none", { redirect_uri: EVIL, prompt: "none" }],
  ["another redirect_uri and two scopes", { redirect_uri: EVIL, scope: ["a", "b"] }],
];

for (const [what, changes] of INVALID_CLIENTS)
  test(`a request with ${what} gets an error page and no redirect`, (t) =>
    isRefused(t, { redirect_uri: REGISTERED, ...changes }));

test("a client without redirect URIs can't use the authorization endpoint", async (t) => {
  await isRefused(t, {}, await service.createOrganization());
});

const REDIRECTS: Record<string, string> = {
  "with a query": "https://app.example.com/cb?tenant=a%20b&x=",
  "with a private-use scheme": "com.example.app:/oauth/callback",
};

for (const [what, redirect_uri] of Object.entries(REDIRECTS))
  test(`a redirect URI ${what} is kept as it is, and receives the code`, async (t) => {
    const { app: other, user } = await createApp(service, [redirect_uri]);
    const { href, searchParams } = await allow(service, user, authorizeUrl(service, other, { redirect_uri }));
    const [address, query] = redirect_uri.split("?");
    t.is(href.split("?")[0], address);
    for (const [name, value] of new URLSearchParams(query)) t.is(searchParams.get(name), value);
    t.truthy(searchParams.get("code"));
  });
