import test from "ava";
import { codeFor, createApp, isAcceptedByApi, redeemCode, refresh } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { rounds } from "../../harness/rounds.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const browser = new TestBrowser(service.url);
test.after.always(() => service.close());

const ROUNDS = rounds(10, 50);
const CONCURRENCY = 20;

test.serial(
  "concurrent redemptions of one code succeed exactly once, with tokens that stay valid",
  async (t) => {
    for (let round = 0; round < ROUNDS; round++) {
      const code = await codeFor(service, app, user, { browser });
      const answers = await Promise.all(
        Array.from({ length: CONCURRENCY }, () => redeemCode(service, app, code)),
      );
      const [winner, ...others] = answers.filter(({ status }) => status === 200);
      t.deepEqual(others, []);
      for (const { status, body } of answers.filter((answer) => answer !== winner)) {
        t.is(status, 400);
        t.is(body.error, "invalid_grant");
      }
      t.true(await isAcceptedByApi(service, winner?.body.access_token));
      t.is((await refresh(service, app, String(winner?.body.refresh_token))).status, 200);
    }
  },
);

test.serial(
  "concurrent replays after the retry window are rejected and revoke every token of the grant",
  async (t) => {
    const code = await codeFor(service, app, user, { browser });
    const { body } = await redeemCode(service, app, code);
    advanceClock(11_000);
    const answers = await Promise.all(
      Array.from({ length: CONCURRENCY }, () => redeemCode(service, app, code)),
    );
    for (const { status, body } of answers) {
      t.is(status, 400);
      t.is(body.error, "invalid_grant");
    }
    t.false(await isAcceptedByApi(service, body.access_token));
    t.is((await refresh(service, app, String(body.refresh_token))).status, 400);
  },
);

test.serial("invalid redemptions don't prevent a concurrent valid one", async (t) => {
  const other = await createApp(service);
  for (let round = 0; round < 5; round++) {
    const code = await codeFor(service, app, user, { browser });
    const answers = await Promise.all(
      Array.from({ length: CONCURRENCY }, (_, index) => {
        if (index % 4 === 0) return redeemCode(service, app, code);
        if (index % 4 === 1) return redeemCode(service, other.app, code);
        return redeemCode(service, app, code, { code_verifier: "x".repeat(43) });
      }),
    );
    const winners = answers.filter(({ status }) => status === 200);
    t.is(winners.length, 1);
    t.true(answers.every(({ status }) => status === 200 || status === 400));
    t.true(await isAcceptedByApi(service, winners[0]?.body.access_token));
  }
});
