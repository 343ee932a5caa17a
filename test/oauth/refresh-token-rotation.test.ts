import test from "ava";
import { EVENT_DATA_SCHEMAS } from "../../resources/events/schemas.ts";
import { connectRegistered, runCodeFlow, shareApp } from "../harness/clients/authorization.ts";
import { createApp } from "../harness/clients/authorization-request.ts";
import {
  isAcceptedByApi,
  postAsClient,
  redeemCode,
  refresh,
  register,
  requestTokens,
} from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { advanceClock, DAY_MS } from "../harness/clock.ts";
import { purgeExpired } from "../harness/database/purge.ts";
import { atOnce } from "../harness/database/storage.ts";

export const databases = "all";

const { service, app, user } = await shareApp({ DYNAMIC_REGISTRATION: "stateless" });
const other = await createApp(service);
const registerHost = () => register(service, { redirect_uris: ["http://127.0.0.1/callback"] });
let host = await registerHost();
const member = await service.createUser([(await service.createOrganization()).id], undefined, "owner");

// Not remembered: a remembered consent ends when it would have ended, which the tests reach with the clock.
const FRESH = { changes: { prompt: "consent" } };

const AFTER_RETRY_WINDOW = 11_000;

/** Returns tokens in the last 30% of the refresh token's lifetime, when it is rotated even for confidential clients. */
async function oldTokens() {
  const tokens = await runCodeFlow(service, app, user, FRESH);
  advanceClock(22 * DAY_MS);
  return tokens;
}

test.serial("a confidential client's refresh token is rotated in the last 30% of its lifetime", async (t) => {
  const changes = { ...FRESH.changes, scope: "links:write webhooks:read" };
  const { refreshToken } = await runCodeFlow(service, app, user, { changes });
  advanceClock(20 * DAY_MS);
  const answers = await atOnce(20, () => refresh(service, app, refreshToken));
  const given = answers.map(({ status, body }) => `${status} ${body.refresh_token}`);
  t.deepEqual([...new Set(given)], [`200 ${refreshToken}`]);
  advanceClock(2 * DAY_MS);
  for (const fields of [{ scope: "admin:all" }, { resource: "https://evil.example/" }])
    t.is((await refresh(service, app, refreshToken, fields)).status, 400, JSON.stringify(fields));
  advanceClock(AFTER_RETRY_WINDOW);
  const { status, body } = await refresh(service, app, refreshToken, { scope: "links:read" });
  t.is(status, 200, "a rejected request rotates nothing");
  t.is(body.scope, "links:read");
  t.regex(String(body.refresh_token), /^lgr_/);
  t.not(body.refresh_token, refreshToken);
  const whole = await refresh(service, app, String(body.refresh_token));
  t.is(whole.body.scope, changes.scope, "the grant isn't narrower than before");
  t.is(whole.body.refresh_token, body.refresh_token);
});

test.serial("of a rotated token, uses by others and an introspection revoke nothing", async (t) => {
  const { refreshToken } = await oldTokens();
  const { body } = await refresh(service, app, refreshToken);
  advanceClock(AFTER_RETRY_WINDOW);
  t.is((await refresh(service, other.app, refreshToken)).body.error, "invalid_grant");
  t.is((await refresh(service, { ...app, clientSecret: "x" }, refreshToken)).status, 401);
  const introspected = await postAsClient(service, "introspect", app, { token: refreshToken });
  t.deepEqual(introspected.body, { active: false });
  t.is((await postAsClient(service, "revoke", other.app, { token: refreshToken })).status, 200);
  t.true(await isAcceptedByApi(service, body.access_token));
  t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
});

test.serial("a replay is detected weeks later, even after a purge", async (t) => {
  const { refreshToken } = await oldTokens();
  const first = await refresh(service, app, refreshToken);
  advanceClock(25 * DAY_MS);
  await purgeExpired(service.storage);
  const current = await refresh(service, app, String(first.body.refresh_token));
  t.is(current.status, 200);
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  t.false(await isAcceptedByApi(service, current.body.access_token));
  t.is((await refresh(service, app, String(current.body.refresh_token))).body.error, "invalid_grant");
});

type Made = Awaited<ReturnType<typeof createApp>>;

/** Uses what can be used once; the function that it returns replays it. */
const REPLAYS = {
  async authorization_code({ app, user }: Made) {
    const { code } = await runCodeFlow(service, app, user);
    return () => redeemCode(service, app, code);
  },
  async refresh_token({ app, user }: Made) {
    const { refreshToken } = await runCodeFlow(service, app, user);
    advanceClock(22 * DAY_MS);
    await refresh(service, app, refreshToken);
    return () => refresh(service, app, refreshToken);
  },
};

const entriesOf = ({ own }: Made, type: "token.replay_detected" | "authorization.revoked") =>
  service.storage.audit.list(own.id, { types: [type] }, 100);

for (const [replayed, prepare] of Object.entries(REPLAYS))
  test.serial(`several replays of a used ${replayed} are recorded once`, async (t) => {
    const made = await createApp(service);
    const replay = await prepare(made);
    advanceClock(AFTER_RETRY_WINDOW);
    for (const { status } of await atOnce(20, replay)) t.is(status, 400);
    const [detected, ...more] = await entriesOf(made, "token.replay_detected");
    t.deepEqual(more, []);
    const data = { client_id: made.app.clientId, user_id: made.user.id, replayed };
    t.like(detected, { actor: "system", data });
    t.deepEqual(EVENT_DATA_SCHEMAS["token.replay_detected"].parse(detected?.data), detected?.data as never);
    const [revoked, ...others] = await entriesOf(made, "authorization.revoked");
    t.is(revoked?.data.reason, "replay_detected");
    t.deepEqual(others, []);
  });

test.serial("an app that revokes its own token is not a replay", async (t) => {
  const made = await createApp(service);
  const { refreshToken } = await runCodeFlow(service, made.app, made.user);
  await postAsClient(service, "revoke", made.app, { token: refreshToken });
  t.deepEqual(await entriesOf(made, "token.replay_detected"), []);
  const [revoked] = await entriesOf(made, "authorization.revoked");
  t.is(revoked?.actor, made.app.clientId);
  t.false("reason" in (revoked?.data ?? {}));
});

const SECOND = 1000;
const browser = new TestBrowser(service.url);

type Pair = { access_token?: unknown; refresh_token?: unknown };

const use = (token: unknown) =>
  requestTokens(service, host, { grant_type: "refresh_token", refresh_token: String(token) });

const connect = async (): Promise<Pair> =>
  (await connectRegistered(service, host, member, { resource: `${service.url}/v1`, browser })).body;

async function connectNewHost(): Promise<unknown> {
  host = await registerHost(); // the tests reach the end of a registration
  return (await connect()).refresh_token;
}

async function brokenOf(pairs: Pair[], exchange: (token: unknown) => ReturnType<typeof use>) {
  const broken: string[] = [];
  for (const [index, { access_token, refresh_token }] of pairs.entries()) {
    if (!(await isAcceptedByApi(service, access_token))) broken.push(`access token ${index}`);
    if ((await exchange(refresh_token)).status !== 200) broken.push(`refresh token ${index}`);
  }
  return broken;
}

for (const [what, seconds, token, exchange, otherGrant] of [
  ["public", 120, connectNewHost, use, async () => (await connect()).access_token],
  [
    "confidential",
    10,
    async () => (await oldTokens()).refreshToken,
    (value: unknown) => refresh(service, app, String(value)),
    async () => (await runCodeFlow(service, app, user, FRESH)).accessToken,
  ],
] as const) {
  test.serial(`of a ${what} client, a refresh token is retried ten times, no more`, async (t) => {
    const value = await token();
    const answers = await atOnce(20, () => exchange(value));
    const pairs = answers.filter(({ status }) => status === 200).map(({ body }) => body);
    t.is(new Set(pairs.map((pair) => pair.refresh_token)).size, 11);
    for (const { status, body } of answers)
      if (status !== 200) t.is(`${status} ${body.error}`, "400 invalid_grant");
    advanceClock((seconds - 1) * SECOND);
    t.is((await exchange(value)).body.error, "invalid_grant");
    const broken = await brokenOf(pairs, exchange);
    t.deepEqual(broken, [], "one use too many changes nothing in the time for retries");
  });

  test.serial(`of a ${what} client, a use after ${seconds + 1} s revokes the family`, async (t) => {
    const value = await token();
    const other = await otherGrant();
    const first = await exchange(value);
    advanceClock((seconds - 1) * SECOND);
    const retry = await exchange(value);
    t.is(retry.status, 200);
    // The time counts from the first use, not from the last one.
    advanceClock(2 * SECOND);
    t.is((await exchange(value)).body.error, "invalid_grant");
    for (const { body } of [first, retry]) {
      t.false(await isAcceptedByApi(service, body.access_token));
      t.is((await exchange(body.refresh_token)).body.error, "invalid_grant");
    }
    t.true(await isAcceptedByApi(service, other), "another grant stays valid");
  });
}
