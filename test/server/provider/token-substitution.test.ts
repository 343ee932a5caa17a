import test from "ava";
import { ask, codeFor, createApp, newTokens, opensApi, redeemCode, refresh } from "../harness/oauth.ts";
import { bearer, startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
test.after.always(() => service.close());

test("sec 49: a token of one kind is useless as another", async (t) => {
  const { accessToken, refreshToken, code } = await newTokens(service, app, user);
  const own = await service.token(app);
  const open = await codeFor(service, app, user);
  for (const secret of [refreshToken, code, open, app.clientSecret, app.clientId]) {
    t.false(await opensApi(service, secret));
  }
  for (const secret of [accessToken, own, open, app.clientSecret]) {
    t.is((await refresh(service, app, secret)).body.error, "invalid_grant");
  }
  for (const secret of [accessToken, own, refreshToken, app.clientSecret]) {
    t.is((await redeemCode(service, app, secret)).body.error, "invalid_grant");
  }
  t.deepEqual((await ask(service, "introspect", app, { token: open })).body, { active: false });
  t.is((await ask(service, "revoke", app, { token: open })).status, 200);
  t.is((await redeemCode(service, app, open)).status, 200);
});

test("sec 50: a token that was changed in one place is no token", async (t) => {
  const token = await service.token(app);
  const swapped = token.replace(/[a-zA-Z](?=[^a-zA-Z]*$)/, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );
  for (const changed of [
    swapped,
    token.toUpperCase(),
    token.slice(0, -1),
    `${token}A`,
    `${token}=`,
    token.slice(4),
  ]) {
    t.not(changed, token);
    t.false(await opensApi(service, changed), changed);
    t.deepEqual((await ask(service, "introspect", app, { token: changed })).body, { active: false });
  }
  for (const padded of [` ${token}`, `${token} `, `${token}\u0000`, `${token}\n`]) {
    t.deepEqual((await ask(service, "introspect", app, { token: padded })).body, { active: false });
  }
  t.is((await fetch(`${service.url}/v1/organization`, { headers: bearer(token) })).status, 200);
});

test("sec 48: tokens, codes, ids and secrets are long, random and of few letters", async (t) => {
  const { accessToken, refreshToken, code } = await newTokens(service, app, user);
  const patterns: [string, RegExp][] = [
    [accessToken, /^lga_[A-Za-z0-9_-]{43,}$/],
    [await service.token(app), /^lga_[A-Za-z0-9_-]{43,}$/],
    [refreshToken, /^lgr_[A-Za-z0-9_-]{43,}$/],
    [code, /^[A-Za-z0-9_-]{43,}$/],
    [app.clientId, /^lgc_[A-Za-z0-9_-]{22,}$/],
    [app.clientSecret, /^lgs_[A-Za-z0-9_-]{43,}$/],
  ];
  for (const [value, pattern] of patterns) t.regex(value, pattern);
});

test("sec 48: of 1000 tokens no two share a beginning", async (t) => {
  const heads = new Set<string>();
  for (let batch = 0; batch < 20; batch++) {
    const tokens = await Promise.all(Array.from({ length: 50 }, () => service.token(app)));
    for (const token of tokens) heads.add(token.slice(4, 16));
  }
  t.is(heads.size, 1000);
});
