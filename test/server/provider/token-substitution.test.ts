import test from "ava";
import {
  codeFor,
  createApp,
  isAcceptedByApi,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
test.after.always(() => service.close());

test("a token is rejected wherever another kind of token is expected", async (t) => {
  const { accessToken, refreshToken, code } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  const unredeemed = await codeFor(service, app, user);
  for (const secret of [refreshToken, code, unredeemed, app.clientSecret, app.clientId]) {
    t.false(await isAcceptedByApi(service, secret));
  }
  for (const secret of [accessToken, own, unredeemed, app.clientSecret]) {
    t.is((await refresh(service, app, secret)).body.error, "invalid_grant");
  }
  for (const secret of [accessToken, own, refreshToken, app.clientSecret]) {
    t.is((await redeemCode(service, app, secret)).body.error, "invalid_grant");
  }
  t.deepEqual((await postAsClient(service, "introspect", app, { token: unredeemed })).body, {
    active: false,
  });
  t.is((await postAsClient(service, "revoke", app, { token: unredeemed })).status, 200);
  t.is((await redeemCode(service, app, unredeemed)).status, 200);
});

test("a modified token is rejected", async (t) => {
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
    t.false(await isAcceptedByApi(service, changed), changed);
    t.deepEqual((await postAsClient(service, "introspect", app, { token: changed })).body, { active: false });
  }
  for (const padded of [` ${token}`, `${token} `, `${token}\u0000`, `${token}\n`]) {
    t.deepEqual(
      (await postAsClient(service, "introspect", app, { token: padded })).body,
      { active: false },
      padded,
    );
  }
  t.is((await fetch(`${service.url}/v1/organization`, { headers: bearer(token) })).status, 200);
});

test("tokens, codes, ids and secrets are long and use only URL-safe characters", async (t) => {
  const { accessToken, refreshToken, code } = await runCodeFlow(service, app, user);
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

test("tokens are random from the end of their time on", async (t) => {
  const prefixes = new Set<string>();
  for (let batch = 0; batch < 20; batch++) {
    const tokens = await Promise.all(Array.from({ length: 50 }, () => service.token(app)));
    for (const token of tokens) prefixes.add(token.slice(13, 25));
  }
  t.is(prefixes.size, 1000);
});
