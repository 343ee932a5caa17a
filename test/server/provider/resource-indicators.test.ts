import test from "ava";
import {
  ask,
  authorizeUrl,
  codeFor,
  createApp,
  type Fields,
  opensApi,
  redeemCode,
  refresh,
} from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const person = new Person(service.url);
const base = service.url;
const api = `${base}/v1`;
const mcp = `${base}/mcp`;
test.after.always(() => service.close());

const audienceOf = async (token: unknown) =>
  (await ask(service, "introspect", app, { token: String(token) })).body.aud;

const code = (changes: Fields = {}) => codeFor(service, app, user, { changes, person });

test.serial(
  "what was authorized without a resource is for both, and may be narrowed for each token",
  async (t) => {
    for (const [resource, audience] of [
      [undefined, base],
      [base, base],
      [api, api],
      [mcp, mcp],
      [`${api}/`, api],
    ] as const) {
      const { status, body } = await redeemCode(service, app, await code(), { resource });
      t.is(status, 200);
      t.is(await audienceOf(body.access_token), audience);
      for (const [next, then] of [
        [undefined, base],
        [api, api],
        [`${mcp}/`, mcp],
      ] as const) {
        const again = await refresh(service, app, String(body.refresh_token), { resource: next });
        t.is(again.status, 200);
        t.is(await audienceOf(again.body.access_token), then);
      }
    }
  },
);

test.serial("sec 67: what was authorized with a resource stays with it", async (t) => {
  for (const granted of [api, mcp, base]) {
    const { body } = await redeemCode(service, app, await code({ resource: granted }));
    t.is(await audienceOf(body.access_token), granted);
    const token = String(body.refresh_token);
    t.is(await audienceOf((await refresh(service, app, token)).body.access_token), granted);
    for (const other of [api, mcp, base].filter((one) => one !== granted)) {
      const { status, body: refusal } = await refresh(service, app, token, { resource: other });
      t.is(status, 400, `${granted} → ${other}`);
      t.is(refusal.error, "invalid_target");
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
  test.serial(`one resource written as ${parts.join(", then ")} is one resource`, async (t) => {
    const { status, body } = await redeemCode(service, app, await code({ resource: first }), {
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
    `sec 67: ${resource.replace(base, "")} is invalid_target at every step, and costs neither code nor token`,
    async (t) => {
      const page = await person.open(authorizeUrl(service, app, { resource }));
      t.is(new URL(page.url).searchParams.get("error"), "invalid_target");
      const given = await code();
      t.is((await redeemCode(service, app, given, { resource })).body.error, "invalid_target");
      const { status, body } = await redeemCode(service, app, given);
      t.is(status, 200);
      const token = String(body.refresh_token);
      t.is((await refresh(service, app, token, { resource })).body.error, "invalid_target");
      t.is((await refresh(service, app, token)).status, 200);
      t.true(await opensApi(service, body.access_token));
    },
  );
}

for (const resource of [
  [api, mcp],
  [base, api],
  [base, api, mcp],
]) {
  test.serial(
    `${resource.length} resources at the token endpoint are invalid_target, and cost nothing (${resource[0] === base})`,
    async (t) => {
      const given = await code();
      t.is((await redeemCode(service, app, given, { resource })).body.error, "invalid_target");
      const { status, body } = await redeemCode(service, app, given);
      t.is(status, 200);
      const token = String(body.refresh_token);
      t.is((await refresh(service, app, token, { resource })).body.error, "invalid_target");
      t.is((await refresh(service, app, token, { resource: mcp })).status, 200);
    },
  );
}

test.serial("several resources may be authorized; each token is for one of them", async (t) => {
  const given = await code({ resource: [api, `${mcp}/`] });
  const { status, body } = await redeemCode(service, app, given, { resource: mcp });
  t.is(status, 200);
  t.is(await audienceOf(body.access_token), mcp);
  const token = String(body.refresh_token);
  const other = await refresh(service, app, token, { resource: api });
  t.is(await audienceOf(other.body.access_token), api);
  t.is((await refresh(service, app, token, { resource: base })).body.error, "invalid_target");
});

test.serial(
  "who was allowed two resources has to name one, and is told so before anything is used up",
  async (t) => {
    const given = await code({ resource: [api, mcp] });
    t.is((await redeemCode(service, app, given)).body.error, "invalid_target");
    const { status, body } = await redeemCode(service, app, given, { resource: api });
    t.is(status, 200);
    const token = String(body.refresh_token);
    t.is((await refresh(service, app, token)).body.error, "invalid_target");
    t.is((await refresh(service, app, token, { resource: api })).status, 200);
  },
);

test.serial("a token of the one for both opens the API, one of MCP does not", async (t) => {
  const { body } = await redeemCode(service, app, await code());
  t.true(await opensApi(service, body.access_token));
  for (const [resource, opens] of [
    [api, true],
    [mcp, false],
  ] as const) {
    const again = await refresh(service, app, String(body.refresh_token), { resource });
    t.is(await opensApi(service, again.body.access_token), opens);
  }
});
