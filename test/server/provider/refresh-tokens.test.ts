import test from "ava";
import * as oidc from "openid-client";
import { discover } from "../../harness/clients/flow.ts";
import {
  createApp,
  type Fields,
  isAcceptedByApi,
  postAsClient,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { advanceClock } from "../../harness/clock.ts";
import { bearer, startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const { app, own, user } = await createApp(service);
const other = await createApp(service);
test.after.always(() => service.close());

const HOUR = 3600_000;
const DAY = 24 * HOUR;

test("a refresh token can be used repeatedly, each time for a new access token", async (t) => {
  const { refreshToken, accessToken } = await runCodeFlow(service, app, user);
  const seen = new Set([accessToken]);
  for (let round = 0; round < 3; round++) {
    const { status, body } = await refresh(service, app, refreshToken);
    t.is(status, 200);
    t.is(body.refresh_token, refreshToken);
    t.is(body.token_type, "Bearer");
    t.is(body.expires_in, 3600);
    t.true(await isAcceptedByApi(service, body.access_token));
    seen.add(String(body.access_token));
  }
  t.is(seen.size, 4);
  t.true(await isAcceptedByApi(service, accessToken));
});

test("another client can't use a refresh token, and the attempt revokes nothing", async (t) => {
  const { refreshToken, accessToken } = await runCodeFlow(service, app, user);
  t.is((await refresh(service, other.app, refreshToken)).body.error, "invalid_grant");
  t.true(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test("a refresh with a wrong secret is rejected and revokes nothing", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user);
  t.is((await refresh(service, { ...app, clientSecret: "x" }, refreshToken)).status, 401);
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

const SCOPE = "openid links:write webhooks:read";
const NARROWED: [requested: string, granted: string][] = [
  ["links:write", "links:write"],
  ["links:read", "links:read"],
  ["webhooks:read links:read", "links:read webhooks:read"],
  ["openid links:read", "openid links:read"],
];

for (const [requested, granted] of NARROWED) {
  test(`a refresh may narrow ${SCOPE} to ${requested} without changing the grant`, async (t) => {
    const { refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: SCOPE } });
    const { status, body } = await refresh(service, app, refreshToken, { scope: requested });
    t.is(status, 200);
    t.deepEqual(String(body.scope).split(" ").sort(), granted.split(" ").sort());
    t.is((await refresh(service, app, refreshToken)).body.scope, SCOPE);
  });
}

test("an access token narrowed to read can't write", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: "links:write" } });
  const { body } = await refresh(service, app, refreshToken, { scope: "links:read" });
  const headers = { ...bearer(String(body.access_token)), "content-type": "application/json" };
  const url = `${service.url}/v1/links`;
  t.is((await fetch(url, { headers })).status, 200);
  const link = JSON.stringify({ url: "https://example.com/" });
  t.is((await fetch(url, { method: "POST", headers, body: link })).status, 403);
});

for (const scope of [
  "webhooks:write",
  "links:write webhooks:write",
  "admin:all",
  "links:write admin:all",
  "LINKS:WRITE",
  "offline_access",
]) {
  test(`a refresh of ${SCOPE} for ${scope} is rejected`, async (t) => {
    const { refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: SCOPE } });
    const { status, body } = await refresh(service, app, refreshToken, { scope });
    t.is(status, 400);
    t.is(body.error, "invalid_scope");
    t.is((await refresh(service, app, refreshToken)).body.scope, SCOPE);
  });
}

const REPEATED: [requested: string, granted: string, changes?: Fields][] = [
  ["links:write offline_access", "links:write"],
  ["openid offline_access links:write", "openid links:write"],
  ["openid links:read webhooks:read", "openid links:read webhooks:read"],
  ["openid offline_access links:write", "openid offline_access links:write", { prompt: "consent" }],
  ["openid offline_access", "openid offline_access", { prompt: "consent" }],
];

for (const [requested, granted, changes] of REPEATED) {
  const request = new URLSearchParams({ scope: requested, ...changes } as Record<string, string>).toString();
  test(`a refresh may repeat the parameters of the authorization request ${request}`, async (t) => {
    const { refreshToken } = await runCodeFlow(service, app, user, {
      changes: { scope: requested, ...changes },
    });
    for (const scope of [requested, requested.split(" ").reverse().join(" ")]) {
      const { status, body, text } = await refresh(service, app, refreshToken, { scope });
      t.is(status, 200, text);
      t.deepEqual(String(body.scope).split(" ").sort(), granted.split(" ").sort());
      t.is(body.id_token !== undefined, granted.includes("openid"));
    }
  });
}

test.serial("a refresh may repeat the scope of the authorization request after a rotation", async (t) => {
  const scope = "openid offline_access links:write";
  const { refreshToken } = await runCodeFlow(service, app, user, { changes: { scope } });
  advanceClock(25 * DAY);
  const rotated = await refresh(service, app, refreshToken, { scope });
  t.is(rotated.status, 200);
  t.not(rotated.body.refresh_token, refreshToken);
  const next = await refresh(service, app, String(rotated.body.refresh_token), { scope });
  t.is(next.body.scope, "openid links:write");
});

for (const scope of ["openid links:write", "openid offline_access links:write", "openid"]) {
  test(`a refresh of a grant without openid for ${scope} is rejected`, async (t) => {
    const requested = "links:write offline_access";
    const { refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: requested } });
    const { status, body } = await refresh(service, app, refreshToken, { scope });
    t.is(status, 400);
    t.is(body.error, "invalid_scope");
    t.is((await refresh(service, app, refreshToken)).body.scope, "links:write");
  });
}

test("a refresh for offline_access only is rejected, even if it was granted", async (t) => {
  const changes = { scope: "links:write offline_access", prompt: "consent" };
  const { refreshToken } = await runCodeFlow(service, app, user, { changes });
  for (const scope of ["offline_access", "offline_access offline_access"]) {
    const { status, body } = await refresh(service, app, refreshToken, { scope });
    t.is(status, 400, scope);
    t.is(body.error, "invalid_scope", scope);
  }
});

test("a refresh can't extend links:read to links:write", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: "links:read" } });
  t.is((await refresh(service, app, refreshToken, { scope: "links:write" })).body.error, "invalid_scope");
});

test("openid-client refreshes and gets a new id_token", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: "openid links:read" } });
  const tokens = await oidc.refreshTokenGrant(await discover(service, app), refreshToken);
  t.is(tokens.claims()?.sub, user.id);
  t.is(tokens.claims()?.organization_id, own.id);
});

const modified = (token: string) => [
  token.slice(0, -1),
  `${token}A`,
  ` ${token}`,
  `${token}\u0000`,
  token.slice(4),
  token.replace("lgr_", "lga_"),
  "lgr_",
];

test("a modified refresh token is rejected", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user);
  for (const token of modified(refreshToken)) {
    t.is((await refresh(service, app, token)).body.error, "invalid_grant", token);
  }
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test.serial("an access token expires after one hour", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  advanceClock(HOUR - 60_000);
  t.true(await isAcceptedByApi(service, accessToken));
  t.true(await isAcceptedByApi(service, own));
  advanceClock(61_000);
  t.false(await isAcceptedByApi(service, accessToken));
  t.false(await isAcceptedByApi(service, own));
  t.deepEqual((await postAsClient(service, "introspect", app, { token: own })).body, { active: false });
});

test.serial("a refresh token expires after 30 days without use", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user);
  const late = await runCodeFlow(service, app, user);
  advanceClock(30 * DAY - 60_000);
  t.is((await refresh(service, app, refreshToken)).status, 200);
  advanceClock(61_000);
  t.is((await refresh(service, app, late.refreshToken)).body.error, "invalid_grant");
});

test.serial("all tokens of a grant expire after 90 days, regardless of use", async (t) => {
  // Asks for consent anew: a remembered one ends when it would have ended.
  let { refreshToken } = await runCodeFlow(service, app, user, { changes: { prompt: "consent" } });
  let accessToken: unknown;
  for (let days = 25; days < 90; days += 25) {
    advanceClock(25 * DAY);
    const { status, body } = await refresh(service, app, refreshToken);
    t.is(status, 200, `day ${days}`);
    t.not(body.refresh_token, refreshToken);
    refreshToken = String(body.refresh_token);
    accessToken = body.access_token;
  }
  advanceClock(14 * DAY);
  t.is((await refresh(service, app, refreshToken)).status, 200, "day 89");
  advanceClock(DAY + 2000);
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant", "day 90");
  t.false(await isAcceptedByApi(service, accessToken));
});
