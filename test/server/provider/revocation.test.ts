import test from "ava";
import * as oidc from "openid-client";
import { OPERATOR } from "../../resources/events.ts";
import { advanceClock } from "../harness/clock.ts";
import { discover } from "../harness/flow.ts";
import {
  type Answer,
  ask,
  codeFor,
  createApp,
  newTokens,
  opensApi,
  redeemCode,
  refresh,
} from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const other = await createApp(service);
test.after.always(() => service.close());

const revoke = (token: string, hint?: string, client = app) =>
  ask(service, "revoke", client, { token, token_type_hint: hint });

const HINTS = [undefined, "access_token", "refresh_token", "id_token", "bogus", ""];

for (const hint of HINTS) {
  test(`sec 75: whatever is revoked with the hint ${JSON.stringify(hint)} is revoked`, async (t) => {
    const own = await service.token(app);
    const byAccess = await newTokens(service, app, user);
    const byRefresh = await newTokens(service, app, user);
    for (const token of [own, byAccess.accessToken, byRefresh.refreshToken]) {
      const { status, text } = await revoke(token, hint);
      t.is(status, 200);
      t.is(text, "");
    }
    for (const token of [own, byAccess.accessToken, byRefresh.accessToken]) {
      t.false(await opensApi(service, token));
    }
    for (const { refreshToken } of [byAccess, byRefresh]) {
      t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
    }
  });
}

test("sec 76: the access or the refresh token of a person ends the whole authorization at once", async (t) => {
  for (const which of ["accessToken", "refreshToken"] as const) {
    const tokens = await newTokens(service, app, user);
    const { body } = await refresh(service, app, tokens.refreshToken);
    await revoke(tokens[which]);
    t.false(await opensApi(service, tokens.accessToken));
    t.false(await opensApi(service, body.access_token));
    t.is((await refresh(service, app, tokens.refreshToken)).body.error, "invalid_grant");
  }
});

test("a client's own token ends alone", async (t) => {
  const [first, second] = [await service.token(app), await service.token(app)];
  const { accessToken } = await newTokens(service, app, user);
  await revoke(first);
  t.false(await opensApi(service, first));
  t.true(await opensApi(service, second));
  t.true(await opensApi(service, accessToken));
});

test.serial(
  "sec 74: unknown, expired, revoked, foreign and malformed tokens are answered like a good one",
  async (t) => {
    const foreign = await newTokens(service, other.app, other.user);
    const expired = await service.token(app);
    advanceClock(3601_000);
    const revoked = await service.token(app);
    const good = await revoke(revoked);
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
      t.is(answer.status, good.status, token);
      t.is(answer.text, good.text, token);
      t.deepEqual(withoutIds(answer), withoutIds(good), token);
    }
    t.is((await redeemCode(service, app, code)).status, 200);
  },
);

/** The headers, but for those that differ at every request. */
function withoutIds({ headers }: Answer): object {
  return Object.fromEntries([...headers].filter(([name]) => name !== "x-request-id" && name !== "date"));
}

test("sec 77: another client cannot revoke", async (t) => {
  const { accessToken, refreshToken } = await newTokens(service, app, user);
  const own = await service.token(app);
  for (const token of [accessToken, refreshToken, own]) {
    for (const hint of HINTS) t.is((await revoke(token, hint, other.app)).status, 200);
  }
  t.true(await opensApi(service, accessToken));
  t.true(await opensApi(service, own));
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test("sec 77: the public client cannot revoke what is not its own", async (t) => {
  const { accessToken } = await newTokens(service, app, user);
  const body = new URLSearchParams({ token: accessToken, client_id: "dashboard" });
  const { status } = await fetch(`${service.url}/oauth/revoke`, { method: "POST", body });
  t.is(status, 200);
  t.true(await opensApi(service, accessToken));
});

test("without a token there is nothing to revoke", async (t) => {
  for (const token of [undefined, ""]) {
    const { status, body } = await ask(service, "revoke", app, { token });
    t.is(status, 400);
    t.is(body.error, "invalid_request");
  }
});

test("a code that is not redeemed yet outlives no revocation of its grant", async (t) => {
  const code = await codeFor(service, app, user);
  const { body } = await redeemCode(service, app, code);
  await revoke(String(body.access_token));
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
});

test("a client without a paid plan may still revoke", async (t) => {
  const { app: leaving, user: person } = await createApp(service);
  const { accessToken, refreshToken } = await newTokens(service, leaving, person);
  const own = await service.token(leaving);
  await service.storage.organizations.setPlan(leaving.id, "free", OPERATOR);
  for (const token of [refreshToken, own]) t.is((await revoke(token, undefined, leaving)).status, 200);
  await service.storage.organizations.setPlan(leaving.id, "growth", OPERATOR);
  t.false(await opensApi(service, accessToken));
  t.false(await opensApi(service, own));
});

test("openid-client revokes", async (t) => {
  const { accessToken, refreshToken } = await newTokens(service, app, user);
  await oidc.tokenRevocation(await discover(service, app), refreshToken, {
    token_type_hint: "refresh_token",
  });
  t.false(await opensApi(service, accessToken));
});
