import test from "ava";
import * as oidc from "openid-client";
import { OPERATOR } from "../../../resources/events/types.ts";
import { discover } from "../../harness/clients/flow.ts";
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

export const databases = "all";

const service = await startTestService();
const { app, user } = await createApp(service);
const other = await createApp(service);

test.after.always(() => service.close());

const revoke = (token: string, hint?: string, client = app) =>
  postAsClient(service, "revoke", client, { token, token_type_hint: hint });

const HINTS = [undefined, "access_token", "refresh_token", "id_token", "bogus", ""];

for (const hint of HINTS) {
  test(`every kind of token is revoked with the hint ${JSON.stringify(hint)}`, async (t) => {
    const own = await service.token(app);
    const byAccess = await runCodeFlow(service, app, user);
    const byRefresh = await runCodeFlow(service, app, user);
    for (const token of [own, byAccess.accessToken, byRefresh.refreshToken]) {
      const { status, headers, text } = await revoke(token, hint);
      t.is(status, 200);
      // For clients that parse every response as JSON. RFC 7009 §2.2 ignores the body.
      t.regex(headers.get("content-type") ?? "", /^application\/json/);
      t.is(text, "{}");
    }
    for (const token of [own, byAccess.accessToken, byRefresh.accessToken]) {
      t.false(await isAcceptedByApi(service, token));
    }
    for (const { refreshToken } of [byAccess, byRefresh]) {
      t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
    }
  });
}

test("revoking a user's access or refresh token immediately revokes the whole grant", async (t) => {
  for (const which of ["accessToken", "refreshToken"] as const) {
    const tokens = await runCodeFlow(service, app, user);
    const { body } = await refresh(service, app, tokens.refreshToken);
    await revoke(tokens[which]);
    t.false(await isAcceptedByApi(service, tokens.accessToken), which);
    t.false(await isAcceptedByApi(service, body.access_token), which);
    t.is((await refresh(service, app, tokens.refreshToken)).body.error, "invalid_grant", which);
  }
});

test("revoking a client credentials token revokes only that token", async (t) => {
  const [first, second] = [await service.token(app), await service.token(app)];
  const { accessToken } = await runCodeFlow(service, app, user);
  await revoke(first);
  t.false(await isAcceptedByApi(service, first));
  t.true(await isAcceptedByApi(service, second));
  t.true(await isAcceptedByApi(service, accessToken));
});

test.serial(
  "unknown, expired, revoked, foreign and malformed tokens get the same response as a valid one",
  async (t) => {
    const foreign = await runCodeFlow(service, other.app, other.user);
    const expired = await service.token(app);
    advanceClock(3601_000);
    const revoked = await service.token(app);
    const valid = await revoke(revoked);
    const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln";
    const code = await codeFor(service, app, user);
    for (const token of [
      revoked,
      expired,
      foreign.refreshToken,
      foreign.accessToken,
      jwt,
      "lga_x",
      "x",
      "\u0000",
      "é".repeat(100),
      "..",
      code,
    ]) {
      const answer = await revoke(token);
      t.is(answer.status, valid.status, token);
      t.is(answer.text, valid.text, token);
      t.deepEqual(withoutIds(answer), withoutIds(valid), token);
    }
    t.is((await redeemCode(service, app, code)).status, 200);
  },
);

/** Returns the headers except those that differ for every request. */
function withoutIds({ headers }: Answer): object {
  return Object.fromEntries([...headers].filter(([name]) => name !== "x-request-id" && name !== "date"));
}

test("another client can't revoke a token", async (t) => {
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  for (const token of [accessToken, refreshToken, own]) {
    for (const hint of HINTS) t.is((await revoke(token, hint, other.app)).status, 200, String(hint));
  }
  t.true(await isAcceptedByApi(service, accessToken));
  t.true(await isAcceptedByApi(service, own));
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test("the public client can't revoke another client's token", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user);
  const body = new URLSearchParams({ token: accessToken, client_id: "dashboard" });
  const { status } = await fetch(`${service.url}/oauth/revoke`, { method: "POST", body });
  t.is(status, 200);
  t.true(await isAcceptedByApi(service, accessToken));
});

test("a revocation without a token is rejected with invalid_request", async (t) => {
  for (const token of [undefined, ""]) {
    const { status, body } = await postAsClient(service, "revoke", app, { token });
    t.is(status, 400, String(token));
    t.is(body.error, "invalid_request", String(token));
  }
});

test("a code can't be redeemed after its grant is revoked", async (t) => {
  const code = await codeFor(service, app, user);
  const { body } = await redeemCode(service, app, code);
  await revoke(String(body.access_token));
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
});

test("a client on the Free plan can still revoke tokens", async (t) => {
  const { app: downgraded, user: owner } = await createApp(service);
  const { accessToken, refreshToken } = await runCodeFlow(service, downgraded, owner);
  const own = await service.token(downgraded);
  await service.storage.organizations.setPlan(downgraded.id, "free", OPERATOR);
  for (const token of [refreshToken, own]) t.is((await revoke(token, undefined, downgraded)).status, 200);
  await service.storage.organizations.setPlan(downgraded.id, "growth", OPERATOR);
  t.false(await isAcceptedByApi(service, accessToken));
  t.false(await isAcceptedByApi(service, own));
});

test("openid-client revokes a token", async (t) => {
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  await oidc.tokenRevocation(await discover(service, app), refreshToken, {
    token_type_hint: "refresh_token",
  });
  t.false(await isAcceptedByApi(service, accessToken));
});

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
