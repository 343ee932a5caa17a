import test from "ava";
import { EVENT_DATA_SCHEMAS } from "../../../resources/events/schemas.ts";
import {
  createApp,
  isAcceptedByApi,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { advanceClock } from "../../harness/clock.ts";
import { purgeExpired } from "../../harness/database/purge.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const { app, user } = await createApp(service);
const other = await createApp(service);

const { app: auditedApp, own: audited, user: auditedUser } = await createApp(service);

test.after.always(() => service.close());

// Not remembered: a remembered consent ends when it would have ended, which the tests reach with the clock.
const FRESH = { changes: { prompt: "consent" } };

const DAY = 24 * 3600_000;
const AFTER_RETRY_WINDOW = 11_000;

/** Returns tokens in the last 30% of the refresh token's lifetime, when it is rotated even for confidential clients. */
async function oldTokens() {
  const tokens = await runCodeFlow(service, app, user, {
    changes: { ...FRESH.changes, scope: "links:write webhooks:read" },
  });
  advanceClock(22 * DAY);
  return tokens;
}

test.serial(
  "a confidential client's refresh token is rotated only in the last 30% of its lifetime",
  async (t) => {
    const { refreshToken } = await runCodeFlow(service, app, user, FRESH);
    advanceClock(20 * DAY);
    t.is((await refresh(service, app, refreshToken)).body.refresh_token, refreshToken);
    advanceClock(2 * DAY);
    const { status, body } = await refresh(service, app, refreshToken);
    t.is(status, 200);
    t.regex(String(body.refresh_token), /^lgr_/);
    t.not(body.refresh_token, refreshToken);
    t.is((await refresh(service, app, String(body.refresh_token))).body.refresh_token, body.refresh_token);
  },
);

test.serial(
  "a confidential client may retry a rotated refresh token for 10 seconds, and each retry gets new tokens",
  async (t) => {
    const { refreshToken } = await oldTokens();
    const first = await refresh(service, app, refreshToken);
    advanceClock(8000);
    const retry = await refresh(service, app, refreshToken);
    t.is(retry.status, 200);
    t.not(retry.body.refresh_token, first.body.refresh_token);
    for (const { body } of [first, retry]) {
      t.true(await isAcceptedByApi(service, body.access_token));
      t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
    }
  },
);

test.serial("a replay after the retry window revokes the whole family", async (t) => {
  const { refreshToken } = await oldTokens();
  const first = await refresh(service, app, refreshToken);
  const retry = await refresh(service, app, refreshToken);
  const later = await refresh(service, app, String(first.body.refresh_token));
  const bystander = await runCodeFlow(service, app, user, FRESH);
  advanceClock(AFTER_RETRY_WINDOW);
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  for (const { body } of [first, retry, later]) {
    t.false(await isAcceptedByApi(service, body.access_token));
    t.is((await refresh(service, app, String(body.refresh_token))).body.error, "invalid_grant");
  }
  t.true(await isAcceptedByApi(service, bystander.accessToken));
});

test.serial("a replay by another client or with a wrong secret revokes nothing", async (t) => {
  const { refreshToken } = await oldTokens();
  const { body } = await refresh(service, app, refreshToken);
  advanceClock(AFTER_RETRY_WINDOW);
  t.is((await refresh(service, other.app, refreshToken)).body.error, "invalid_grant");
  t.is((await refresh(service, { ...app, clientSecret: "x" }, refreshToken)).status, 401);
  t.true(await isAcceptedByApi(service, body.access_token));
  t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
});

test.serial("introspecting a rotated token, or revoking it as another client, revokes nothing", async (t) => {
  const { refreshToken } = await oldTokens();
  const { body } = await refresh(service, app, refreshToken);
  advanceClock(AFTER_RETRY_WINDOW);
  t.deepEqual((await postAsClient(service, "introspect", app, { token: refreshToken })).body, {
    active: false,
  });
  t.is((await postAsClient(service, "revoke", other.app, { token: refreshToken })).status, 200);
  t.true(await isAcceptedByApi(service, body.access_token));
});

test.serial("a replay is detected weeks later, even after a purge", async (t) => {
  const { refreshToken } = await oldTokens();
  const first = await refresh(service, app, refreshToken);
  advanceClock(25 * DAY);
  await purgeExpired(service.storage);
  const current = await refresh(service, app, String(first.body.refresh_token));
  t.is(current.status, 200);
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  t.false(await isAcceptedByApi(service, current.body.access_token));
  t.is((await refresh(service, app, String(current.body.refresh_token))).body.error, "invalid_grant");
});

test.serial("rotation keeps the granted scope when a narrower access token is requested", async (t) => {
  const { refreshToken } = await oldTokens();
  const { body } = await refresh(service, app, refreshToken, { scope: "links:read" });
  t.is(body.scope, "links:read");
  t.not(body.refresh_token, refreshToken);
  const whole = await refresh(service, app, String(body.refresh_token));
  t.is(whole.body.scope, "links:write webhooks:read");
});

test.serial("a rejected request doesn't rotate the refresh token", async (t) => {
  const { refreshToken } = await oldTokens();
  for (const fields of [{ scope: "admin:all" }, { resource: "https://evil.example/" }]) {
    t.is((await refresh(service, app, refreshToken, fields)).status, 400, JSON.stringify(fields));
  }
  advanceClock(AFTER_RETRY_WINDOW);
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test.serial(
  "of concurrent refreshes within the retry window, eleven get new tokens of the same grant",
  async (t) => {
    for (let round = 0; round < 3; round++) {
      const { refreshToken, accessToken } = await oldTokens();
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => refresh(service, app, refreshToken)),
      );
      const pairs = answers.filter(({ status }) => status === 200).map(({ body }) => body);
      t.is(new Set(pairs.map((pair) => pair.refresh_token)).size, 11, "the first use and ten retries");
      const refused = answers.filter(({ status }) => status !== 200);
      for (const { status, body } of refused) t.is(`${status} ${body.error}`, "400 invalid_grant");
      for (const pair of pairs) t.true(await isAcceptedByApi(service, pair.access_token));
      // They share one grant, so revoking one revokes all.
      await postAsClient(service, "revoke", app, { token: String(pairs[round]?.refresh_token) });
      for (const pair of pairs) {
        t.false(await isAcceptedByApi(service, pair.access_token));
        t.is((await refresh(service, app, String(pair.refresh_token))).status, 400);
      }
      t.false(await isAcceptedByApi(service, accessToken));
    }
  },
);

test.serial(
  "concurrent refreshes without rotation each get an access token and the same refresh token",
  async (t) => {
    const { refreshToken } = await runCodeFlow(service, app, user, FRESH);
    const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(service, app, refreshToken)));
    t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    t.deepEqual([...new Set(answers.map(({ body }) => body.refresh_token))], [refreshToken]);
  },
);

test.serial("concurrent replays after the retry window are all rejected", async (t) => {
  const { refreshToken } = await oldTokens();
  const { body } = await refresh(service, app, refreshToken);
  advanceClock(AFTER_RETRY_WINDOW);
  const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(service, app, refreshToken)));
  t.deepEqual(
    [...new Set(answers.map((answer) => `${answer.status} ${answer.body.error}`))],
    ["400 invalid_grant"],
  );
  t.false(await isAcceptedByApi(service, body.access_token));
});

const FRESH_WRITE = { changes: { prompt: "consent", scope: "links:write" } };

/** Returns the entries since the last call. */
const seen = new Set<string>();
async function newEntries() {
  const entries = await service.storage.audit.list(audited.id, {}, 100);
  const fresh = entries.filter(({ id }) => !seen.has(id));
  for (const { id } of fresh) seen.add(id);
  return fresh;
}
const only = (entries: Awaited<ReturnType<typeof newEntries>>, type: string) =>
  entries.filter((entry) => entry.type === type);

test.serial("the replay of a code is recorded once, however many requests detect it", async (t) => {
  const { code, accessToken } = await runCodeFlow(service, auditedApp, auditedUser, FRESH_WRITE);
  advanceClock(AFTER_RETRY_WINDOW);
  await newEntries();
  const replies = await atOnce(20, () => redeemCode(service, auditedApp, code));
  t.true(replies.every(({ status }) => status === 400));
  t.false(await isAcceptedByApi(service, accessToken));
  const entries = await newEntries();
  const [detected, ...more] = only(entries, "token.replay_detected");
  t.is(more.length, 0);
  t.like(detected, {
    actor: "system",
    data: { client_id: auditedApp.clientId, user_id: auditedUser.id, replayed: "authorization_code" },
  });
  t.deepEqual(EVENT_DATA_SCHEMAS["token.replay_detected"].parse(detected?.data), detected?.data as never);
  const revoked = only(entries, "authorization.revoked");
  t.is(revoked.length, 1);
  t.is(revoked[0]?.data.reason, "replay_detected");
});

test.serial("the replay of a rotated refresh token is recorded once", async (t) => {
  const { refreshToken } = await runCodeFlow(service, auditedApp, auditedUser, FRESH_WRITE);
  advanceClock(22 * DAY);
  t.is((await refresh(service, auditedApp, refreshToken)).status, 200);
  advanceClock(AFTER_RETRY_WINDOW);
  await newEntries();
  await atOnce(20, () => refresh(service, auditedApp, refreshToken));
  const entries = await newEntries();
  t.deepEqual(
    only(entries, "token.replay_detected").map(({ data }) => data.replayed),
    ["refresh_token"],
  );
  t.is(only(entries, "authorization.revoked").length, 1);
});

test.serial("an app that revokes its own token is not a replay", async (t) => {
  const { refreshToken } = await runCodeFlow(service, auditedApp, auditedUser, FRESH_WRITE);
  await newEntries();
  await postAsClient(service, "revoke", auditedApp, { token: refreshToken });
  const entries = await newEntries();
  t.is(only(entries, "token.replay_detected").length, 0);
  const [revoked] = only(entries, "authorization.revoked");
  t.is(revoked?.actor, auditedApp.clientId);
  t.false("reason" in (revoked?.data ?? {}));
});
