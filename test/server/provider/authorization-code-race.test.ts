import test from "ava";
import { advanceClock } from "../harness/clock.ts";
import { codeFor, createApp, opensApi, redeemCode, refresh } from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const person = new Person(service.url);
test.after.always(() => service.close());

const ROUNDS = 50;
const AT_ONCE = 20;

test.serial(
  `sec 37: of ${AT_ONCE} redemptions of one code at once exactly one gets tokens, and they live`,
  async (t) => {
    for (let round = 0; round < ROUNDS; round++) {
      const code = await codeFor(service, app, user, { person });
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, () => redeemCode(service, app, code)),
      );
      const [winner, ...others] = answers.filter(({ status }) => status === 200);
      t.deepEqual(others, []);
      for (const { status, body } of answers.filter((answer) => answer !== winner)) {
        t.is(status, 400);
        t.is(body.error, "invalid_grant");
      }
      t.true(await opensApi(service, winner?.body.access_token));
      t.is((await refresh(service, app, String(winner?.body.refresh_token))).status, 200);
    }
  },
);

test.serial(
  "sec 35, 37: of 20 replays at once after the window none gets tokens, and all that there was ends",
  async (t) => {
    const code = await codeFor(service, app, user, { person });
    const { body } = await redeemCode(service, app, code);
    advanceClock(11_000);
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => redeemCode(service, app, code)));
    for (const { status, body } of answers) {
      t.is(status, 400);
      t.is(body.error, "invalid_grant");
    }
    t.false(await opensApi(service, body.access_token));
    t.is((await refresh(service, app, String(body.refresh_token))).status, 400);
  },
);

test.serial("sec 36, 37: wrong attempts among the right ones cost the right one nothing", async (t) => {
  const other = await createApp(service);
  for (let round = 0; round < 5; round++) {
    const code = await codeFor(service, app, user, { person });
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, index) => {
        if (index % 4 === 0) return redeemCode(service, app, code);
        if (index % 4 === 1) return redeemCode(service, other.app, code);
        return redeemCode(service, app, code, { code_verifier: "x".repeat(43) });
      }),
    );
    const winners = answers.filter(({ status }) => status === 200);
    t.is(winners.length, 1);
    t.true(answers.every(({ status }) => status === 200 || status === 400));
    t.true(await opensApi(service, winners[0]?.body.access_token));
  }
});
