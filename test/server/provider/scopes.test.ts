import test from "ava";
import {
  authorizeUrl,
  codeFor,
  createApp,
  type Fields,
  openConsent,
  redeemCode,
  refresh,
} from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { bearer, startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
test.after.always(() => service.close());

const GRANTED: [what: string, changes: Fields, scope: string][] = [
  ["no scope: the two of links", { scope: undefined }, "links:read links:write"],
  ["an empty scope: the two of links", { scope: "" }, "links:read links:write"],
  ["a read scope: that one", { scope: "links:read" }, "links:read"],
  [
    "a write scope: that one, without the read scope it includes",
    { scope: "webhooks:write" },
    "webhooks:write",
  ],
  ["an unknown scope beside a known one: the known one", { scope: "admin:all links:read" }, "links:read"],
  ["a scope twice: once", { scope: "links:read links:read" }, "links:read"],
  ["openid alone: openid", { scope: "openid" }, "openid"],
  ["openid beside a scope of the API: both", { scope: "openid links:read" }, "openid links:read"],
  [
    "all of them: all of them",
    { scope: "openid links:read links:write webhooks:read webhooks:write" },
    "openid links:read links:write webhooks:read webhooks:write",
  ],
];

for (const [what, changes, scope] of GRANTED) {
  test(`sec 45: ${what}`, async (t) => {
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
    test(`a refresh token comes with ${scope} and the prompt ${prompt}`, async (t) => {
      const code = await codeFor(service, app, user, { changes: { scope, prompt } });
      const { body } = await redeemCode(service, app, code);
      t.regex(String(body.refresh_token), /^lgr_/);
      t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
    });
  }
}

test("sec 45: nothing that was not asked for is on the consent page or in the token", async (t) => {
  const url = authorizeUrl(service, app, { scope: "admin:all links:read" });
  const { html } = await openConsent(new Person(service.url), user, url);
  t.is(html.querySelectorAll(".scopes li").length, 1);
});

test("sec 45: the scopes of a token are the ones it opens", async (t) => {
  const code = await codeFor(service, app, user, { changes: { scope: "links:read" } });
  const { body } = await redeemCode(service, app, code);
  const headers = { ...bearer(String(body.access_token)), "content-type": "application/json" };
  const links = `${service.url}/v1/links`;
  t.is((await fetch(links, { headers })).status, 200);
  const link = JSON.stringify({ url: "https://example.com/" });
  t.is((await fetch(links, { method: "POST", headers, body: link })).status, 403);
});

test("a token for openid alone opens nothing of the API", async (t) => {
  const code = await codeFor(service, app, user, { changes: { scope: "openid" } });
  const { body } = await redeemCode(service, app, code);
  const answer = await fetch(`${service.url}/v1/links`, { headers: bearer(String(body.access_token)) });
  t.true(answer.status === 401 || answer.status === 403, String(answer.status));
});

for (const scope of ["links:read\u0000", 'links:read "x"', "links:read\\", "links:read\tx", "links:rëad"]) {
  test(`the scope ${JSON.stringify(scope)} has letters that a scope cannot have`, async (t) => {
    const page = await new Person(service.url).open(authorizeUrl(service, app, { scope }));
    t.is(new URL(page.url).searchParams.get("error"), "invalid_scope");
  });
}
