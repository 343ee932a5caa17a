import test from "ava";
import {
  type Answer,
  codeFor,
  createApp,
  isAcceptedByApi,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
test.after.always(() => service.close());

const DAY = 24 * 3600_000;

/** Returns whether no token in a response is valid. */
async function isRevoked({ status, body }: Answer): Promise<boolean> {
  if (status !== 200) return true;
  if (await isAcceptedByApi(service, body.access_token)) return false;
  const again = await refresh(service, app, String(body.refresh_token));
  const { active } = (await postAsClient(service, "introspect", app, { token: String(body.access_token) }))
    .body;
  return again.status === 400 && active === false;
}

for (const rotates of [true, false]) {
  test.serial(
    `no token survives a revocation that races with refreshes ${rotates ? "with" : "without"} rotation`,
    async (t) => {
      for (let round = 0; round < (rotates ? 5 : 30); round++) {
        const { refreshToken } = await runCodeFlow(service, app, user);
        if (rotates) advanceClock(22 * DAY);
        const before = Array.from({ length: 4 }, () => refresh(service, app, refreshToken));
        const revocation = postAsClient(service, "revoke", app, { token: refreshToken });
        const after = Array.from({ length: 4 }, () => refresh(service, app, refreshToken));
        t.is((await revocation).status, 200);
        for (const answer of await Promise.all([...before, ...after])) {
          t.true(answer.status === 200 || answer.body.error === "invalid_grant", answer.text);
          t.true(await isRevoked(answer));
        }
      }
    },
  );
}

test.serial("no token survives a revocation of the access token that races with refreshes", async (t) => {
  for (let round = 0; round < 20; round++) {
    const { refreshToken, accessToken } = await runCodeFlow(service, app, user);
    const [revoked, ...answers] = await Promise.all([
      postAsClient(service, "revoke", app, { token: accessToken }),
      ...Array.from({ length: 8 }, () => refresh(service, app, refreshToken)),
    ]);
    t.is(revoked?.status, 200);
    for (const answer of answers) t.true(await isRevoked(answer));
  }
});

test.serial("no token survives replays of a code that race with refreshes", async (t) => {
  for (let round = 0; round < 10; round++) {
    const code = await codeFor(service, app, user);
    const first = await redeemCode(service, app, code);
    advanceClock(11_000);
    const token = String(first.body.refresh_token);
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        index % 3 === 0 ? redeemCode(service, app, code) : refresh(service, app, token),
      ),
    );
    for (const answer of [first, ...answers]) t.true(await isRevoked(answer));
  }
});

test.serial("concurrent revocations of one token all get 200", async (t) => {
  const { refreshToken, accessToken } = await runCodeFlow(service, app, user);
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      postAsClient(service, "revoke", app, { token: index % 2 ? refreshToken : accessToken }),
    ),
  );
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  t.false(await isAcceptedByApi(service, accessToken));
});
