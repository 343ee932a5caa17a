import test from "ava";
import * as oidc from "openid-client";
import { advanceClock } from "../harness/clock.ts";
import { discover } from "../harness/flow.ts";
import { ask, createApp, type Fields, newTokens, opensApi, refresh } from "../harness/oauth.ts";
import { bearer, startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
const other = await createApp(service);
test.after.always(() => service.close());

const HOUR = 3600_000;
const DAY = 24 * HOUR;

test("the same refresh token is good again and again, each time for a new access token", async (t) => {
  const { refreshToken, accessToken } = await newTokens(service, app, user);
  const seen = new Set([accessToken]);
  for (let round = 0; round < 3; round++) {
    const { status, body } = await refresh(service, app, refreshToken);
    t.is(status, 200);
    t.is(body.refresh_token, refreshToken);
    t.is(body.token_type, "Bearer");
    t.is(body.expires_in, 3600);
    t.true(await opensApi(service, body.access_token));
    seen.add(String(body.access_token));
  }
  t.is(seen.size, 4);
  t.true(await opensApi(service, accessToken));
});

test("sec 65: another client cannot use a refresh token, and its try ends nothing", async (t) => {
  const { refreshToken, accessToken } = await newTokens(service, app, user);
  t.is((await refresh(service, other.app, refreshToken)).body.error, "invalid_grant");
  t.true(await opensApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test("sec 65: a wrong secret does not use a refresh token, and ends nothing", async (t) => {
  const { refreshToken } = await newTokens(service, app, user);
  t.is((await refresh(service, { ...app, clientSecret: "x" }, refreshToken)).status, 401);
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

const SCOPE = "openid links:write webhooks:read";
const NARROWED: [asked: string, granted: string][] = [
  ["links:write", "links:write"],
  ["links:read", "links:read"],
  ["webhooks:read links:read", "links:read webhooks:read"],
  ["openid links:read", "openid links:read"],
];

for (const [asked, granted] of NARROWED) {
  test(`sec 66: ${SCOPE} may become ${asked}, and next time it is whole again`, async (t) => {
    const { refreshToken } = await newTokens(service, app, user, { changes: { scope: SCOPE } });
    const { status, body } = await refresh(service, app, refreshToken, { scope: asked });
    t.is(status, 200);
    t.deepEqual(String(body.scope).split(" ").sort(), granted.split(" ").sort());
    t.is((await refresh(service, app, refreshToken)).body.scope, SCOPE);
  });
}

test("sec 66: a token that was narrowed to read cannot write", async (t) => {
  const { refreshToken } = await newTokens(service, app, user, { changes: { scope: "links:write" } });
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
  test(`sec 66: ${SCOPE} cannot become ${scope}`, async (t) => {
    const { refreshToken } = await newTokens(service, app, user, { changes: { scope: SCOPE } });
    const { status, body } = await refresh(service, app, refreshToken, { scope });
    t.is(status, 400);
    t.is(body.error, "invalid_scope");
    t.is((await refresh(service, app, refreshToken)).body.scope, SCOPE);
  });
}

const REPEATED: [asked: string, granted: string, changes?: Fields][] = [
  ["links:write offline_access", "links:write"],
  ["openid offline_access links:write", "openid links:write"],
  ["openid links:read webhooks:read", "openid links:read webhooks:read"],
  ["openid offline_access links:write", "openid links:write", { prompt: "consent" }],
  ["openid offline_access", "openid", { prompt: "consent" }],
];

for (const [asked, granted, changes] of REPEATED) {
  const how = new URLSearchParams({ scope: asked, ...changes } as Record<string, string>).toString();
  test(`what was asked may be sent again at the refresh: ${how}`, async (t) => {
    const { refreshToken } = await newTokens(service, app, user, { changes: { scope: asked, ...changes } });
    for (const scope of [asked, asked.split(" ").reverse().join(" ")]) {
      const { status, body, text } = await refresh(service, app, refreshToken, { scope });
      t.is(status, 200, text);
      t.deepEqual(String(body.scope).split(" ").sort(), granted.split(" ").sort());
      t.is(body.id_token !== undefined, granted.includes("openid"));
    }
  });
}

test.serial("what was asked may be sent again when the refresh token is rotated", async (t) => {
  const scope = "openid offline_access links:write";
  const { refreshToken } = await newTokens(service, app, user, { changes: { scope } });
  advanceClock(25 * DAY);
  const rotated = await refresh(service, app, refreshToken, { scope });
  t.is(rotated.status, 200);
  t.not(rotated.body.refresh_token, refreshToken);
  const next = await refresh(service, app, String(rotated.body.refresh_token), { scope });
  t.is(next.body.scope, "openid links:write");
});

for (const scope of ["openid links:write", "openid offline_access links:write", "openid"]) {
  test(`sec 66: a refresh without openid at the start cannot become ${scope}`, async (t) => {
    const asked = "links:write offline_access";
    const { refreshToken } = await newTokens(service, app, user, { changes: { scope: asked } });
    const { status, body } = await refresh(service, app, refreshToken, { scope });
    t.is(status, 400);
    t.is(body.error, "invalid_scope");
    t.is((await refresh(service, app, refreshToken)).body.scope, "links:write");
  });
}

test("sec 66: offline_access alone is nothing to refresh for, even where it was granted", async (t) => {
  const changes = { scope: "links:write offline_access", prompt: "consent" };
  const { refreshToken } = await newTokens(service, app, user, { changes });
  for (const scope of ["offline_access", "offline_access offline_access"]) {
    const { status, body } = await refresh(service, app, refreshToken, { scope });
    t.is(status, 400);
    t.is(body.error, "invalid_scope");
  }
});

test("sec 66: links:read cannot become links:write", async (t) => {
  const { refreshToken } = await newTokens(service, app, user, { changes: { scope: "links:read" } });
  t.is((await refresh(service, app, refreshToken, { scope: "links:write" })).body.error, "invalid_scope");
});

test("openid-client refreshes, with the id_token again", async (t) => {
  const { refreshToken } = await newTokens(service, app, user, { changes: { scope: "openid links:read" } });
  const tokens = await oidc.refreshTokenGrant(await discover(service, app), refreshToken);
  t.is(tokens.claims()?.sub, user.id);
  t.is(tokens.claims()?.organization_id, own.id);
});

const NO_TOKENS = (token: string) => [
  token.slice(0, -1),
  `${token}A`,
  ` ${token}`,
  `${token}\u0000`,
  token.slice(4),
  token.replace("lgr_", "lga_"),
  "lgr_",
];

test("sec 50: a refresh token that was changed is none", async (t) => {
  const { refreshToken } = await newTokens(service, app, user);
  for (const token of NO_TOKENS(refreshToken)) {
    t.is((await refresh(service, app, token)).body.error, "invalid_grant", token);
  }
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test.serial("an access token lives for one hour", async (t) => {
  const { accessToken } = await newTokens(service, app, user);
  const own = await service.token(app);
  advanceClock(HOUR - 2000);
  t.true(await opensApi(service, accessToken));
  t.true(await opensApi(service, own));
  advanceClock(3000);
  t.false(await opensApi(service, accessToken));
  t.false(await opensApi(service, own));
  t.deepEqual((await ask(service, "introspect", app, { token: own })).body, { active: false });
});

test.serial("sec 71: a refresh token that is left alone for 30 days is dead", async (t) => {
  const { refreshToken } = await newTokens(service, app, user);
  const late = await newTokens(service, app, user);
  advanceClock(30 * DAY - 2000);
  t.is((await refresh(service, app, refreshToken)).status, 200);
  advanceClock(3000);
  t.is((await refresh(service, app, late.refreshToken)).body.error, "invalid_grant");
});

test.serial("sec 71: after 90 days everything is dead, however often it was refreshed", async (t) => {
  let { refreshToken } = await newTokens(service, app, user);
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
  t.false(await opensApi(service, accessToken));
});
