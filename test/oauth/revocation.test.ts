import test from "ava";
import { codeFor, runCodeFlow, shareApp } from "../harness/clients/authorization.ts";
import { type Answer, isAcceptedByApi, postAsClient, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { advanceClock, DAY_MS } from "../harness/clock.ts";

export const databases = "all";

const { service, app, user, other } = await shareApp();

const revoke = (token: string, hint?: string, client = app) =>
  postAsClient(service, "revoke", client, { token, token_type_hint: hint });

const HINTS = [undefined, "access_token", "refresh_token", "bogus"];

for (const hint of HINTS)
  test(`every kind of token is revoked with the hint ${JSON.stringify(hint)}`, async (t) => {
    const own = await service.token(app);
    const grants = [await runCodeFlow(service, app, user), await runCodeFlow(service, app, user)] as const;
    for (const token of [own, grants[0].accessToken, grants[1].refreshToken]) {
      const { status, headers, text } = await revoke(token, hint);
      t.is(status, 200);
      // For clients that parse every response as JSON. RFC 7009 §2.2 ignores the body.
      t.regex(headers.get("content-type") ?? "", /^application\/json/);
      t.is(text, "{}");
    }
    t.false(await isAcceptedByApi(service, own));
    for (const { accessToken, refreshToken } of grants) {
      t.false(await isAcceptedByApi(service, accessToken));
      t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
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

test("a revocation ignores unknown parameters", async (t) => {
  const token = await service.token(app);
  const unknown = { foo: "x", bar: ["1", "2"] };
  t.is((await postAsClient(service, "revoke", app, { token, ...unknown })).status, 200);
  t.false(await isAcceptedByApi(service, token));
});

test.serial("unknown, expired, revoked, foreign and malformed tokens get the same response", async (t) => {
  const foreign = await runCodeFlow(service, other.app, other.user);
  const expired = await service.token(app);
  advanceClock(3601_000);
  const revoked = await service.token(app);
  const valid = await revoke(revoked);
  const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln";
  const code = await codeFor(service, app, user);
  const malformed = ["lga_x", "x", "\u0000", "é".repeat(100), "..", jwt];
  for (const token of [revoked, expired, foreign.refreshToken, foreign.accessToken, code, ...malformed]) {
    const answer = await revoke(token);
    t.is(answer.status, valid.status, token);
    t.is(answer.text, valid.text, token);
    t.deepEqual(withoutIds(answer), withoutIds(valid), token);
  }
  t.is((await redeemCode(service, app, code)).status, 200);
});

function withoutIds({ headers }: Answer): object {
  return Object.fromEntries([...headers].filter(([name]) => name !== "x-request-id" && name !== "date"));
}

test("another client can't revoke a token, nor can the public client", async (t) => {
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  for (const token of [accessToken, refreshToken, own]) {
    for (const hint of HINTS) t.is((await revoke(token, hint, other.app)).status, 200, String(hint));
    const body = new URLSearchParams({ token, client_id: "dashboard" });
    t.is((await fetch(`${service.url}/oauth/revoke`, { method: "POST", body })).status, 200);
  }
  t.true(await isAcceptedByApi(service, accessToken));
  t.true(await isAcceptedByApi(service, own));
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

async function isRevoked({ status, body }: Answer): Promise<boolean> {
  if (status !== 200) return true;
  const token = String(body.access_token);
  const { body: seen } = await postAsClient(service, "introspect", app, { token });
  const again = await refresh(service, app, String(body.refresh_token));
  return !(await isAcceptedByApi(service, token)) && again.status === 400 && seen.active === false;
}

for (const rotates of [true, false])
  test.serial(
    `no token survives a revocation of refreshes ${rotates ? "with" : "without"} rotation`,
    async (t) => {
      for (let round = 0; round < (rotates ? 3 : 8); round++) {
        const { refreshToken } = await runCodeFlow(service, app, user);
        if (rotates) advanceClock(22 * DAY_MS);
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
