import test from "ava";
import { isProblem } from "../../harness/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { firstPartyAt, isTokenAnswer, PASSWORD } from "../../harness/first-party.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const { post, me, register } = firstPartyAt(service.url);

test.serial(
  "sec 68: a refresh token is used once, may be tried again for ten seconds, and its replay ends the family",
  async (t) => {
    const first = await register();
    const other = await post("/auth/login", { username: first.user.username, password: PASSWORD });
    const refresh = (token: string) => post("/auth/refresh", { refresh_token: token });
    const second = await refresh(first.refresh_token);
    t.is(second.status, 200);
    isTokenAnswer(t, second);
    t.not(second.body.refresh_token, first.refresh_token);
    t.is((await refresh(first.refresh_token)).status, 200, "the answer was lost");
    advanceClock(11_000);
    isProblem(t, await refresh(first.refresh_token), { status: 401, code: "invalid_grant" });
    isProblem(t, await refresh(second.body.refresh_token), { status: 401, code: "invalid_grant" });
    for (const token of [first.access_token, second.body.access_token]) t.is((await me(token)).status, 401);
    t.is((await me(other.body.access_token)).status, 200, "another sign-in goes on");
  },
);

test.serial(
  "sec 71: an access token lasts an hour, a refresh token that is left alone 30 days",
  async (t) => {
    const { access_token, refresh_token } = await register();
    advanceClock(3600_000);
    t.is((await me(access_token)).status, 401);
    const { status, body } = await post("/auth/refresh", { refresh_token });
    t.is(status, 200);
    advanceClock(30 * 24 * 3600_000 + 1000);
    t.is((await post("/auth/refresh", { refresh_token: body.refresh_token })).status, 401);
  },
);

test.serial("sec 71: a sign-in of a program that goes on refreshing ends after 90 days", async (t) => {
  let { refresh_token } = await register();
  for (let count = 0; count < 4; count++) {
    advanceClock(22 * 24 * 3600_000);
    const { status, body } = await post("/auth/refresh", { refresh_token });
    t.is(status, 200, `${count}`);
    refresh_token = body.refresh_token;
  }
  advanceClock(2 * 24 * 3600_000 + 1000);
  t.is((await post("/auth/refresh", { refresh_token })).status, 401);
});

test.serial(
  "sec 69: refreshes of one token at once are retries of one, and a replay later ends them all",
  async (t) => {
    const { refresh_token } = await register();
    const refresh = () => post("/auth/refresh", { refresh_token });
    const replies = await Promise.all(Array.from({ length: 10 }, refresh));
    t.deepEqual([...new Set(replies.map(({ status }) => status))], [200]);
    t.is(new Set(replies.map(({ body }) => body.refresh_token)).size, 10);
    advanceClock(11_000);
    t.is((await refresh()).status, 401);
    for (const { body } of replies) {
      t.is((await me(body.access_token)).status, 401);
      t.is((await post("/auth/refresh", { refresh_token: body.refresh_token })).status, 401);
    }
  },
);

for (const [what, value] of Object.entries({
  nothing: undefined,
  "an unknown one": `lgr_${"a".repeat(43)}`,
  "no text": 7,
  "a NUL": "lgr_\u0000",
})) {
  test(`${what} as a refresh token is refused`, async (t) => {
    const reply = await post("/auth/refresh", { refresh_token: value });
    isProblem(t, reply, { status: 401, code: "invalid_grant" });
  });
}

test("signing out with a token ends it and its family, and no other sign-in", async (t) => {
  const first = await register();
  const other = await post("/auth/login", { username: first.user.username, password: PASSWORD });
  const { status, text } = await post("/auth/logout", {}, first.access_token);
  t.is(status, 204);
  t.is(text, "");
  t.is((await me(first.access_token)).status, 401);
  t.is((await post("/auth/refresh", { refresh_token: first.refresh_token })).status, 401);
  t.is((await me(other.body.access_token)).status, 200);
});

test("a first-party token is revoked at the revocation endpoint, with its family", async (t) => {
  const { access_token, refresh_token } = await register();
  const fields = { token: refresh_token, client_id: "dashboard" };
  t.is((await postForm(`${service.url}/oauth/revoke`, fields)).status, 200);
  t.is((await me(access_token)).status, 401);
});
