import test from "ava";
import { browserOf } from "../../harness/clients/dashboard.ts";
import {
  authorizeUrl,
  codeFor,
  createApp,
  type Fields,
  openConsent,
  redeemCode,
  refresh,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const { browser: signedIn } = await browserOf(service, user);
test.after.always(() => service.close());

const GRANTED: [what: string, changes: Fields, scope: string][] = [
  ["no scope is granted both link scopes", { scope: undefined }, "links:read links:write"],
  ["an empty scope is granted both link scopes", { scope: "" }, "links:read links:write"],
  ["a read scope is granted that scope", { scope: "links:read" }, "links:read"],
  [
    "a write scope is granted without the read scope it includes",
    { scope: "webhooks:write" },
    "webhooks:write",
  ],
  ["an unknown and a known scope is granted the known one", { scope: "admin:all links:read" }, "links:read"],
  ["a repeated scope is granted the scope once", { scope: "links:read links:read" }, "links:read"],
  ["only openid is granted openid", { scope: "openid" }, "openid"],
  ["openid and an API scope is granted both", { scope: "openid links:read" }, "openid links:read"],
  [
    "all scopes is granted all of them",
    { scope: "openid links:read links:write webhooks:read webhooks:write" },
    "openid links:read links:write webhooks:read webhooks:write",
  ],
];

for (const [what, changes, scope] of GRANTED) {
  test(`a request with ${what}`, async (t) => {
    const { status, body } = await redeemCode(service, app, await codeFor(service, app, user, { changes }));
    t.is(status, 200);
    t.is(body.scope, scope);
    t.is("id_token" in body, scope.includes("openid"));
    const again = await refresh(service, app, String(body.refresh_token));
    t.is(again.body.scope, scope);
  });
}

for (const scope of ["links:read", "offline_access links:read"]) {
  for (const prompt of [undefined, "consent"]) {
    test(`a refresh token is issued for the scope ${scope} with the prompt ${prompt}`, async (t) => {
      const code = await codeFor(service, app, user, { changes: { scope, prompt } });
      const { body } = await redeemCode(service, app, code);
      t.regex(String(body.refresh_token), /^lgr_/);
      t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
    });
  }
}

test("the consent page lists only known requested scopes", async (t) => {
  const url = authorizeUrl(service, app, { scope: "admin:all links:read" });
  const { html } = await openConsent(new TestBrowser(service.url), user, url);
  t.is(html.querySelectorAll(".scopes li").length, 1);
});

test("a token with links:read can read but not create links", async (t) => {
  const code = await codeFor(service, app, user, { changes: { scope: "links:read" } });
  const { body } = await redeemCode(service, app, code);
  const headers = { ...bearer(String(body.access_token)), "content-type": "application/json" };
  const links = `${service.url}/v1/links`;
  t.is((await fetch(links, { headers })).status, 200);
  const link = JSON.stringify({ url: "https://example.com/" });
  t.is((await fetch(links, { method: "POST", headers, body: link })).status, 403);
});

test("a token with only openid is rejected by the API", async (t) => {
  const code = await codeFor(service, app, user, { changes: { scope: "openid" } });
  const { body } = await redeemCode(service, app, code);
  const answer = await fetch(`${service.url}/v1/links`, { headers: bearer(String(body.access_token)) });
  t.true(answer.status === 401 || answer.status === 403, String(answer.status));
});

for (const scope of ["links:read\u0000", 'links:read "x"', "links:read\\", "links:read\tx", "links:rëad"]) {
  test(`the scope ${JSON.stringify(scope)} with invalid characters is rejected with invalid_scope`, async (t) => {
    const page = await signedIn.open(authorizeUrl(service, app, { scope }));
    t.is(new URL(page.url).searchParams.get("error"), "invalid_scope");
  });
}
