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
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
test.after.always(() => service.close());

const AFTER_RETRY_WINDOW = 11_000;
const DAY = 24 * 3600_000;
const FRESH = { changes: { prompt: "consent", scope: "links:write" } };

/** Returns the entries since the last call. */
const seen = new Set<string>();
async function newEntries() {
  const entries = await service.storage.audit.list(own.id, {}, 100);
  const fresh = entries.filter(({ id }) => !seen.has(id));
  for (const { id } of fresh) seen.add(id);
  return fresh;
}
const only = (entries: Awaited<ReturnType<typeof newEntries>>, type: string) =>
  entries.filter((entry) => entry.type === type);

test.serial("the replay of a code is recorded once, however many requests detect it", async (t) => {
  const { code, accessToken } = await runCodeFlow(service, app, user, FRESH);
  advanceClock(AFTER_RETRY_WINDOW);
  await newEntries();
  const replies = await atOnce(20, () => redeemCode(service, app, code));
  t.true(replies.every(({ status }) => status === 400));
  t.false(await isAcceptedByApi(service, accessToken));
  const entries = await newEntries();
  const [detected, ...more] = only(entries, "token.replay_detected");
  t.is(more.length, 0);
  t.like(detected, {
    actor: "system",
    data: { client_id: app.clientId, user_id: user.id, replayed: "authorization_code" },
  });
  t.deepEqual(EVENT_DATA_SCHEMAS["token.replay_detected"].parse(detected?.data), detected?.data as never);
  const revoked = only(entries, "authorization.revoked");
  t.is(revoked.length, 1);
  t.is(revoked[0]?.data.reason, "replay_detected");
});

test.serial("the replay of a rotated refresh token is recorded once", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user, FRESH);
  advanceClock(22 * DAY);
  t.is((await refresh(service, app, refreshToken)).status, 200);
  advanceClock(AFTER_RETRY_WINDOW);
  await newEntries();
  await atOnce(20, () => refresh(service, app, refreshToken));
  const entries = await newEntries();
  t.deepEqual(
    only(entries, "token.replay_detected").map(({ data }) => data.replayed),
    ["refresh_token"],
  );
  t.is(only(entries, "authorization.revoked").length, 1);
});

test.serial("an app that revokes its own token is not a replay", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user, FRESH);
  await newEntries();
  await postAsClient(service, "revoke", app, { token: refreshToken });
  const entries = await newEntries();
  t.is(only(entries, "token.replay_detected").length, 0);
  const [revoked] = only(entries, "authorization.revoked");
  t.is(revoked?.actor, app.clientId);
  t.false("reason" in (revoked?.data ?? {}));
});
