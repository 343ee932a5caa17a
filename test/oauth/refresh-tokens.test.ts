import test from "ava";
import { runCodeFlow, shareApp } from "../harness/clients/authorization.ts";
import { isAcceptedByApi, outcomeOf, refresh } from "../harness/clients/oauth.ts";
import { advanceClock, DAY_MS } from "../harness/clock.ts";

const { service, app, user } = await shareApp();

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

const words = (scope: unknown) => String(scope).split(" ").sort();

type Refreshes = [authorized: string, prompt: string | undefined, narrowed: string[], refused: string[]];
const WIDER = ["links:write webhooks:write", "links:write admin:all", "LINKS:WRITE"];
const REFRESHES: Refreshes[] = [
  [
    "openid links:write webhooks:read",
    undefined,
    ["links:write", "links:read", "links:read webhooks:read", "openid links:read"],
    ["webhooks:write", "offline_access", ...WIDER],
  ],
  ["links:read", undefined, [], ["links:write", "openid links:read"]],
  ["links:write offline_access", undefined, [], ["openid links:write", "openid"]],
  [
    "openid offline_access links:write",
    "consent",
    ["links:write"],
    ["offline_access", "offline_access offline_access"],
  ],
];

for (const [authorized, prompt, narrowed, refused] of REFRESHES)
  test(`a refresh may repeat or narrow ${authorized}, and not widen it, with the prompt ${prompt}`, async (t) => {
    const granted = prompt ? authorized : authorized.replace(" offline_access", "");
    const changes = { scope: authorized, prompt };
    const { refreshToken } = await runCodeFlow(service, app, user, { changes });
    const request = (scope?: string) => refresh(service, app, refreshToken, { scope });
    for (const scope of refused) t.is(await outcomeOf(request(scope)), "400 invalid_scope", scope);
    for (const scope of narrowed) t.deepEqual(words((await request(scope)).body.scope), words(scope));
    for (const scope of [authorized, authorized.split(" ").reverse().join(" "), undefined]) {
      const { status, body, text } = await request(scope);
      t.is(status, 200, text);
      t.deepEqual(words(body.scope), words(granted));
      t.is(body.id_token !== undefined, granted.includes("openid"));
    }
  });

test.serial("a refresh may repeat the scope of the authorization request after a rotation", async (t) => {
  const scope = "openid offline_access links:write";
  const { refreshToken } = await runCodeFlow(service, app, user, { changes: { scope } });
  advanceClock(25 * DAY_MS);
  const rotated = await refresh(service, app, refreshToken, { scope });
  t.is(rotated.status, 200);
  t.not(rotated.body.refresh_token, refreshToken);
  const next = await refresh(service, app, String(rotated.body.refresh_token), { scope });
  t.is(next.body.scope, "openid links:write");
});

test.serial("a refresh token expires after 30 days without use", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user);
  const late = await runCodeFlow(service, app, user);
  advanceClock(30 * DAY_MS - 60_000);
  t.is((await refresh(service, app, refreshToken)).status, 200);
  advanceClock(61_000);
  t.is((await refresh(service, app, late.refreshToken)).body.error, "invalid_grant");
});

test.serial("all tokens of a grant expire after 90 days, regardless of use", async (t) => {
  // Asks for consent anew: a remembered one ends when it would have ended.
  let { refreshToken } = await runCodeFlow(service, app, user, { changes: { prompt: "consent" } });
  let accessToken: unknown;
  for (let days = 25; days < 90; days += 25) {
    advanceClock(25 * DAY_MS);
    const { status, body } = await refresh(service, app, refreshToken);
    t.is(status, 200, `day ${days}`);
    t.not(body.refresh_token, refreshToken);
    refreshToken = String(body.refresh_token);
    accessToken = body.access_token;
  }
  advanceClock(14 * DAY_MS);
  t.is((await refresh(service, app, refreshToken)).status, 200, "day 89");
  advanceClock(DAY_MS + 2000);
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant", "day 90");
  t.false(await isAcceptedByApi(service, accessToken));
});
