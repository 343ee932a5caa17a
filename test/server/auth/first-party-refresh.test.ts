import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { isProblem } from "../../harness/clients/api.ts";
import { firstPartyAt, isTokenAnswer, PASSWORD } from "../../harness/clients/first-party.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const { post, me, register } = firstPartyAt(service.url);

const AFTER_RETRY_WINDOW = 121_000;

test.serial(
  "a refresh token works once, may be retried for two minutes, and its replay revokes the family",
  async (t) => {
    const first = await register();
    const other = await post("/auth/login", { username: first.user.username, password: PASSWORD });
    const refresh = (token: string) => post("/auth/refresh", { refresh_token: token });
    const second = await refresh(first.refresh_token);
    t.is(second.status, 200);
    isTokenAnswer(t, second);
    t.not(second.body.refresh_token, first.refresh_token);
    advanceClock(119_000);
    t.is((await refresh(first.refresh_token)).status, 200, "a retry after a lost response");
    advanceClock(AFTER_RETRY_WINDOW);
    isProblem(t, await refresh(first.refresh_token), { status: 401, code: "invalid_grant" });
    isProblem(t, await refresh(second.body.refresh_token), { status: 401, code: "invalid_grant" });
    for (const token of [first.access_token, second.body.access_token]) t.is((await me(token)).status, 401);
    t.is((await me(other.body.access_token)).status, 200, "another grant stays valid");
  },
);

test.serial("an access token is valid for an hour, an unused refresh token for 30 days", async (t) => {
  const { access_token, refresh_token } = await register();
  advanceClock(3600_000);
  t.is((await me(access_token)).status, 401);
  const { status, body } = await post("/auth/refresh", { refresh_token });
  t.is(status, 200);
  advanceClock(30 * 24 * 3600_000 + 1000);
  t.is((await post("/auth/refresh", { refresh_token: body.refresh_token })).status, 401);
});

test.serial("a refresh token family ends after 90 days, however it is used", async (t) => {
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
  "concurrent refreshes of one token count as retries, and a later replay revokes them all",
  async (t) => {
    const { refresh_token } = await register();
    const refresh = () => post("/auth/refresh", { refresh_token });
    const replies = await Promise.all(Array.from({ length: 20 }, refresh));
    const pairs = replies.filter(({ status }) => status === 200);
    t.is(new Set(pairs.map(({ body }) => body.refresh_token)).size, 11, "the first use and ten retries");
    for (const { status } of replies) t.true(status === 200 || status === 401);
    advanceClock(AFTER_RETRY_WINDOW);
    t.is((await refresh()).status, 401);
    for (const { body } of pairs) {
      t.is((await me(body.access_token)).status, 401);
      t.is((await post("/auth/refresh", { refresh_token: body.refresh_token })).status, 401);
    }
  },
);

test.serial("a replay is recorded once, however many requests detect it", async (t) => {
  const { user, refresh_token } = await register();
  const refresh = () => post("/auth/refresh", { refresh_token });
  const organizations = [await service.createOrganization(), await service.createOrganization()];
  for (const { id } of organizations)
    await service.storage.organizations.addMember(id, user.id, "member", OPERATOR);
  t.is((await refresh()).status, 200);
  advanceClock(AFTER_RETRY_WINDOW);
  const replies = await atOnce(20, refresh);
  t.true(replies.every(({ status }) => status === 401));
  for (const { id } of organizations) {
    const entries = await service.storage.audit.list(id, { types: ["token.replay_detected"] }, 10);
    t.is(entries.length, 1);
    t.like(entries[0], {
      actor: "system",
      data: { user_id: user.id, client_id: "dashboard", replayed: "refresh_token" },
    });
    t.regex(entries[0]?.address ?? "", /127\.0\.0\.1$|^::1$/);
  }
});

for (const [what, value] of Object.entries({
  nothing: undefined,
  "an unknown token": `lgr_${"a".repeat(43)}`,
  "no text": 7,
  "a NUL": "lgr_\u0000",
})) {
  test(`${what} is rejected as a refresh token`, async (t) => {
    const reply = await post("/auth/refresh", { refresh_token: value });
    isProblem(t, reply, { status: 401, code: "invalid_grant" });
  });
}

test("signing out with a token revokes it and its family, and no other grant", async (t) => {
  const first = await register();
  const other = await post("/auth/login", { username: first.user.username, password: PASSWORD });
  const { status, text } = await post("/auth/logout", {}, first.access_token);
  t.is(status, 204);
  t.is(text, "");
  t.is((await me(first.access_token)).status, 401);
  t.is((await post("/auth/refresh", { refresh_token: first.refresh_token })).status, 401);
  t.is((await me(other.body.access_token)).status, 200);
});

test("the revocation endpoint revokes a first-party token with its family", async (t) => {
  const { access_token, refresh_token } = await register();
  const fields = { token: refresh_token, client_id: "dashboard" };
  t.is((await postForm(`${service.url}/oauth/revoke`, fields)).status, 200);
  t.is((await me(access_token)).status, 401);
});
