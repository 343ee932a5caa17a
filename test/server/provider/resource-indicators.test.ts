import test from "ava";
import {
  authorizeUrl,
  codeFor,
  createApp,
  type Fields,
  isAcceptedByApi,
  postAsClient,
  redeemCode,
  refresh,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const browser = new TestBrowser(service.url);
const base = service.url;
const api = `${base}/v1`;
const mcp = `${base}/mcp`;
test.after.always(() => service.close());

const audienceOf = async (token: unknown) =>
  (await postAsClient(service, "introspect", app, { token: String(token) })).body.aud;

const newCode = (changes: Fields = {}) => codeFor(service, app, user, { changes, browser });

test.serial("a grant without a resource covers both, and each token may be narrowed to one", async (t) => {
  for (const [resource, audience] of [
    [undefined, base],
    [base, base],
    [api, api],
    [mcp, mcp],
    [`${api}/`, api],
  ] as const) {
    const { status, body } = await redeemCode(service, app, await newCode(), { resource });
    t.is(status, 200, audience);
    t.is(await audienceOf(body.access_token), audience, audience);
    for (const [next, nextAudience] of [
      [undefined, base],
      [api, api],
      [`${mcp}/`, mcp],
    ] as const) {
      const again = await refresh(service, app, String(body.refresh_token), { resource: next });
      t.is(again.status, 200, nextAudience);
      t.is(await audienceOf(again.body.access_token), nextAudience, nextAudience);
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
      const { status, body: rejection } = await refresh(service, app, token, { resource: other });
      t.is(status, 400, `${granted} → ${other}`);
      t.is(rejection.error, "invalid_target");
    }
    t.is((await refresh(service, app, token, { resource: granted })).status, 200);
  }
});

const upper = base.toUpperCase();
const VARIANTS: [authorize: string, token: string, refresh: string, audience: string][] = [
  [`${api}/`, api, api, api],
  [api, `${api}/`, `${upper}/v1`, api],
  [`${upper}/v1`, api, `${api}/`, api],
  [`${mcp}/`, `${upper}/mcp/`, mcp, mcp],
  [`${base}/`, base, upper, base],
  [upper, `${upper}/`, `${base}/`, base],
];

for (const [first, second, third, audience] of VARIANTS) {
  const parts = [first, second, third].map(
    (text) => text.replace(base, "").replace(upper, "UPPER") || "base",
  );
  test.serial(`a resource spelled ${parts.join(", then ")} is the same resource`, async (t) => {
    const { status, body } = await redeemCode(service, app, await newCode({ resource: first }), {
      resource: second,
    });
    t.is(status, 200);
    t.is(await audienceOf(body.access_token), audience);
    const again = await refresh(service, app, String(body.refresh_token), { resource: third });
    t.is(again.status, 200);
    t.is(await audienceOf(again.body.access_token), audience);
  });
}

const UNKNOWN = [
  "https://evil.example/v1",
  `${base}/v2`,
  `${api}/links`,
  `${base}/V1`,
  `${api}?x`,
  `${api}#`,
  "v1",
  "urn:x",
  base.replace("//", "//x@"),
];

for (const resource of UNKNOWN) {
  test.serial(
    `the resource ${resource.replace(base, "")} is rejected at every step and consumes neither code nor token`,
    async (t) => {
      const page = await browser.open(authorizeUrl(service, app, { resource }));
      t.is(new URL(page.url).searchParams.get("error"), "invalid_target");
      const code = await newCode();
      t.is((await redeemCode(service, app, code, { resource })).body.error, "invalid_target");
      const { status, body } = await redeemCode(service, app, code);
      t.is(status, 200);
      const token = String(body.refresh_token);
      t.is((await refresh(service, app, token, { resource })).body.error, "invalid_target");
      t.is((await refresh(service, app, token)).status, 200);
      t.true(await isAcceptedByApi(service, body.access_token));
    },
  );
}

for (const resource of [
  [api, mcp],
  [base, api],
  [base, api, mcp],
]) {
  test.serial(
    `several resources in one token request are rejected and consume nothing: ${resource.map((one) => one.replace(base, "") || "base").join(", ")}`,
    async (t) => {
      const code = await newCode();
      t.is((await redeemCode(service, app, code, { resource })).body.error, "invalid_target");
      const { status, body } = await redeemCode(service, app, code);
      t.is(status, 200);
      const token = String(body.refresh_token);
      t.is((await refresh(service, app, token, { resource })).body.error, "invalid_target");
      t.is((await refresh(service, app, token, { resource: mcp })).status, 200);
    },
  );
}

test.serial("a grant may cover several resources, and each token is for one of them", async (t) => {
  const code = await newCode({ resource: [api, `${mcp}/`] });
  const { status, body } = await redeemCode(service, app, code, { resource: mcp });
  t.is(status, 200);
  t.is(await audienceOf(body.access_token), mcp);
  const token = String(body.refresh_token);
  const other = await refresh(service, app, token, { resource: api });
  t.is(await audienceOf(other.body.access_token), api);
  t.is((await refresh(service, app, token, { resource: base })).body.error, "invalid_target");
});

test.serial(
  "a token request of a grant for two resources must name one, and consumes nothing otherwise",
  async (t) => {
    const code = await newCode({ resource: [api, mcp] });
    t.is((await redeemCode(service, app, code)).body.error, "invalid_target");
    const { status, body } = await redeemCode(service, app, code, { resource: api });
    t.is(status, 200);
    const token = String(body.refresh_token);
    t.is((await refresh(service, app, token)).body.error, "invalid_target");
    t.is((await refresh(service, app, token, { resource: api })).status, 200);
  },
);

test.serial("the API accepts a token for the base URL, but not one for MCP", async (t) => {
  const { body } = await redeemCode(service, app, await newCode());
  t.true(await isAcceptedByApi(service, body.access_token));
  for (const [resource, opens] of [
    [api, true],
    [mcp, false],
  ] as const) {
    const again = await refresh(service, app, String(body.refresh_token), { resource });
    t.is(await isAcceptedByApi(service, again.body.access_token), opens, resource);
  }
});
