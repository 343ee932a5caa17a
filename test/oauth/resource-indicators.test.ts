import test from "ava";
import { codeFor, shareApp } from "../harness/clients/authorization.ts";
import type { Fields } from "../harness/clients/authorization-request.ts";
import { isAcceptedByApi, outcomeOf, postAsClient, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";

const { service, app, user } = await shareApp();
const browser = new TestBrowser(service.url);
const base = service.url;
const api = `${base}/v1`;
const mcp = `${base}/mcp`;

const audienceOf = async (token: unknown) =>
  (await postAsClient(service, "introspect", app, { token: String(token) })).body.aud;

const newCode = (changes: Fields = {}) => codeFor(service, app, user, { changes, browser });

test.serial("a grant without a resource covers both, and each token may be narrowed to one", async (t) => {
  for (const [resource, audience] of [
    [undefined, base],
    [base, base],
    [mcp, mcp],
  ] as const) {
    const { status, body } = await redeemCode(service, app, await newCode(), { resource });
    t.is(status, 200, audience);
    t.is(await audienceOf(body.access_token), audience, audience);
    for (const [next, isApi] of [
      [undefined, true],
      [api, true],
      [mcp, false],
    ] as const) {
      const again = await refresh(service, app, String(body.refresh_token), { resource: next });
      t.is(await audienceOf(again.body.access_token), next ?? base);
      t.is(await isAcceptedByApi(service, again.body.access_token), isApi, next);
    }
  }
});

test.serial("a grant for one resource issues tokens only for that resource", async (t) => {
  for (const granted of [api, mcp, base]) {
    const { body } = await redeemCode(service, app, await newCode({ resource: granted }));
    t.is(await audienceOf(body.access_token), granted);
    const token = String(body.refresh_token);
    t.is(await audienceOf((await refresh(service, app, token)).body.access_token), granted);
    for (const other of [api, mcp, base].filter((one) => one !== granted)) {
      const refused = refresh(service, app, token, { resource: other });
      t.is(await outcomeOf(refused), "400 invalid_target", `${granted} → ${other}`);
    }
    t.is((await refresh(service, app, token, { resource: granted })).status, 200);
  }
});

const UNKNOWN: [what: string, resource: string | string[]][] = [
  ["another resource", "https://evil.example/v1"],
  ["the API with an empty fragment", `${api}#`],
  ["two resources", [api, mcp]],
];

for (const [what, resource] of UNKNOWN)
  test.serial(`a token request for ${what} is rejected and consumes neither code nor token`, async (t) => {
    const code = await newCode();
    t.is((await redeemCode(service, app, code, { resource })).body.error, "invalid_target");
    const { status, body } = await redeemCode(service, app, code);
    t.is(status, 200);
    const token = String(body.refresh_token);
    t.is((await refresh(service, app, token, { resource })).body.error, "invalid_target");
    t.is((await refresh(service, app, token)).status, 200);
    t.true(await isAcceptedByApi(service, body.access_token));
  });

test.serial("a grant for several resources needs one of them in each token request", async (t) => {
  const code = await newCode({ resource: [api, `${mcp}/`] });
  t.is((await redeemCode(service, app, code)).body.error, "invalid_target");
  const { status, body } = await redeemCode(service, app, code, { resource: mcp });
  t.is(status, 200, "the code wasn't used up");
  t.is(await audienceOf(body.access_token), mcp);
  const token = String(body.refresh_token);
  for (const resource of [undefined, base])
    t.is((await refresh(service, app, token, { resource })).body.error, "invalid_target");
  const other = await refresh(service, app, token, { resource: api });
  t.is(await audienceOf(other.body.access_token), api);
});
