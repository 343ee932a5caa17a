import test from "ava";
import { advanceClock } from "../harness/clock.ts";
import { ask, createApp, newTokens, opensApi, refresh } from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const other = await createApp(service);
test.after.always(() => service.close());

const DAY = 24 * 3600_000;
const PAST_WINDOW = 11_000;

/** A refresh token in the last 30 % of its life, when a confidential client's is rotated. */
async function oldTokens() {
  const tokens = await newTokens(service, app, user, { changes: { scope: "links:write webhooks:read" } });
  advanceClock(22 * DAY);
  return tokens;
}

test.serial("a refresh token is kept for 70 % of its life and rotated after", async (t) => {
  const { refreshToken } = await newTokens(service, app, user);
  advanceClock(20 * DAY);
  t.is((await refresh(service, app, refreshToken)).body.refresh_token, refreshToken);
  advanceClock(2 * DAY);
  const { status, body } = await refresh(service, app, refreshToken);
  t.is(status, 200);
  t.regex(String(body.refresh_token), /^lgr_/);
  t.not(body.refresh_token, refreshToken);
  t.is((await refresh(service, app, String(body.refresh_token))).body.refresh_token, body.refresh_token);
});

test.serial(
  "sec 68: a rotated token may be retried for 10 s; each retry gets a pair of its own",
  async (t) => {
    const { refreshToken } = await oldTokens();
    const first = await refresh(service, app, refreshToken);
    advanceClock(8000);
    const retry = await refresh(service, app, refreshToken);
    t.is(retry.status, 200);
    t.not(retry.body.refresh_token, first.body.refresh_token);
    for (const { body } of [first, retry]) {
      t.true(await opensApi(service, body.access_token));
      t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
    }
  },
);

test.serial("sec 68: a replay after the window ends the whole family", async (t) => {
  const { refreshToken } = await oldTokens();
  const first = await refresh(service, app, refreshToken);
  const retry = await refresh(service, app, refreshToken);
  const later = await refresh(service, app, String(first.body.refresh_token));
  const bystander = await newTokens(service, app, user);
  advanceClock(PAST_WINDOW);
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  for (const { body } of [first, retry, later]) {
    t.false(await opensApi(service, body.access_token));
    t.is((await refresh(service, app, String(body.refresh_token))).body.error, "invalid_grant");
  }
  t.true(await opensApi(service, bystander.accessToken));
});

test.serial("sec 65, 68: a replay by another client or with a wrong secret ends nothing", async (t) => {
  const { refreshToken } = await oldTokens();
  const { body } = await refresh(service, app, refreshToken);
  advanceClock(PAST_WINDOW);
  t.is((await refresh(service, other.app, refreshToken)).body.error, "invalid_grant");
  t.is((await refresh(service, { ...app, clientSecret: "x" }, refreshToken)).status, 401);
  t.true(await opensApi(service, body.access_token));
  t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
});

test.serial("sec 68: to introspect or to revoke as another what was rotated ends nothing", async (t) => {
  const { refreshToken } = await oldTokens();
  const { body } = await refresh(service, app, refreshToken);
  advanceClock(PAST_WINDOW);
  t.deepEqual((await ask(service, "introspect", app, { token: refreshToken })).body, { active: false });
  t.is((await ask(service, "revoke", other.app, { token: refreshToken })).status, 200);
  t.true(await opensApi(service, body.access_token));
});

test.serial("sec 73: a replay is recognised weeks later, after a purge", async (t) => {
  const { refreshToken } = await oldTokens();
  const first = await refresh(service, app, refreshToken);
  advanceClock(25 * DAY);
  await service.storage.sweep();
  const current = await refresh(service, app, String(first.body.refresh_token));
  t.is(current.status, 200);
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  t.false(await opensApi(service, current.body.access_token));
  t.is((await refresh(service, app, String(current.body.refresh_token))).body.error, "invalid_grant");
});

test.serial("sec 66: rotation keeps the whole scope, however narrow the access token", async (t) => {
  const { refreshToken } = await oldTokens();
  const { body } = await refresh(service, app, refreshToken, { scope: "links:read" });
  t.is(body.scope, "links:read");
  t.not(body.refresh_token, refreshToken);
  const whole = await refresh(service, app, String(body.refresh_token));
  t.is(whole.body.scope, "links:write webhooks:read");
});

test.serial("a request that is refused rotates nothing", async (t) => {
  const { refreshToken } = await oldTokens();
  for (const fields of [{ scope: "admin:all" }, { resource: "https://evil.example/" }]) {
    t.is((await refresh(service, app, refreshToken, fields)).status, 400);
  }
  advanceClock(PAST_WINDOW);
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test.serial(
  "sec 69: of 20 refreshes at once inside the window each gets a pair, all of one grant",
  async (t) => {
    for (let round = 0; round < 3; round++) {
      const { refreshToken, accessToken } = await oldTokens();
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => refresh(service, app, refreshToken)),
      );
      t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
      const pairs = answers.map(({ body }) => body);
      t.is(new Set(pairs.map((pair) => pair.refresh_token)).size, 20);
      for (const pair of pairs) t.true(await opensApi(service, pair.access_token));
      // One grant: to revoke any of them is to revoke all.
      await ask(service, "revoke", app, { token: String(pairs[round]?.refresh_token) });
      for (const pair of pairs) {
        t.false(await opensApi(service, pair.access_token));
        t.is((await refresh(service, app, String(pair.refresh_token))).status, 400);
      }
      t.false(await opensApi(service, accessToken));
    }
  },
);

test.serial(
  "sec 69: of 20 refreshes at once with a kept token each gets an access token and the same refresh token",
  async (t) => {
    const { refreshToken } = await newTokens(service, app, user);
    const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(service, app, refreshToken)));
    t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    t.deepEqual([...new Set(answers.map(({ body }) => body.refresh_token))], [refreshToken]);
  },
);

test.serial("sec 68: of 20 replays at once after the window none gets tokens", async (t) => {
  const { refreshToken } = await oldTokens();
  const { body } = await refresh(service, app, refreshToken);
  advanceClock(PAST_WINDOW);
  const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(service, app, refreshToken)));
  t.deepEqual(
    [...new Set(answers.map((answer) => `${answer.status} ${answer.body.error}`))],
    ["400 invalid_grant"],
  );
  t.false(await opensApi(service, body.access_token));
});
