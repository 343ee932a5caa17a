import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import { advanceClock } from "../harness/clock.ts";
import { ask, codeFor, createApp, newTokens, opensApi, redeemCode, refresh } from "../harness/oauth.ts";
import { startTestService, type TestOrganization } from "../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const HOUR = 3600_000;

async function rotate(
  app: TestOrganization,
  overlapMs = 24 * HOUR,
  compromised = false,
): Promise<TestOrganization> {
  const rotation = await service.storage.clients.rotateSecret(app.id, { overlapMs, compromised }, OPERATOR);
  if (!rotation) throw new Error("no client");
  return { ...app, clientSecret: rotation.clientSecret };
}

/** Whether a secret is the client's, at every endpoint alike. */
async function isGood(app: TestOrganization): Promise<boolean> {
  const statuses = new Set<number>();
  for (const [endpoint, fields] of [
    ["token", { grant_type: "client_credentials" }],
    ["revoke", { token: "x" }],
    ["introspect", { token: "x" }],
  ] as const) {
    statuses.add((await ask(service, endpoint, app, fields)).status);
  }
  if (statuses.size !== 1) throw new Error(`not alike: ${[...statuses]}`);
  return statuses.has(200);
}

test.serial("sec 128: after a rotation both secrets are good, until the overlap is over", async (t) => {
  const { app } = await createApp(service);
  const renewed = await rotate(app);
  t.not(renewed.clientSecret, app.clientSecret);
  t.true(await isGood(app));
  t.true(await isGood(renewed));
  advanceClock(24 * HOUR - 1000);
  t.true(await isGood(app));
  advanceClock(2000);
  t.false(await isGood(app));
  t.true(await isGood(renewed));
  advanceClock(1000 * HOUR);
  t.true(await isGood(renewed));
});

test("sec 128: without an overlap the old secret ends at once", async (t) => {
  const { app } = await createApp(service);
  const renewed = await rotate(app, 0);
  t.false(await isGood(app));
  t.true(await isGood(renewed));
});

test("sec 128: a third secret ends the oldest at once", async (t) => {
  const { app: first } = await createApp(service);
  const second = await rotate(first);
  const third = await rotate(first);
  t.false(await isGood(first));
  t.true(await isGood(second));
  t.true(await isGood(third));
});

test("sec 128: of 10 rotations at once two secrets are left", async (t) => {
  const { app } = await createApp(service);
  const all = [app, ...(await Promise.all(Array.from({ length: 10 }, () => rotate(app))))];
  const good = [];
  for (const one of all) if (await isGood(one)) good.push(one);
  t.is(good.length, 2);
  t.false(good.includes(app));
});

test("a rotation leaves tokens, codes and refresh tokens alone", async (t) => {
  const { app, user } = await createApp(service);
  const { accessToken, refreshToken } = await newTokens(service, app, user);
  const own = await service.token(app);
  const code = await codeFor(service, app, user);
  const renewed = await rotate(app, 0);
  t.true(await opensApi(service, accessToken));
  t.true(await opensApi(service, own));
  t.is((await refresh(service, renewed, refreshToken)).status, 200);
  t.is((await redeemCode(service, renewed, code)).status, 200);
  t.is((await refresh(service, app, refreshToken)).status, 401);
});

test("sec 128: compromised ends every older secret and every token of the client at once", async (t) => {
  const { app, user } = await createApp(service);
  const { accessToken, refreshToken } = await newTokens(service, app, user);
  const own = await service.token(app);
  const code = await codeFor(service, app, user);
  const bystander = await createApp(service);
  const foreign = await service.token(bystander.app);
  const second = await rotate(app);
  const renewed = await rotate(app, 0, true);
  t.false(await isGood(app));
  t.false(await isGood(second));
  t.true(await isGood(renewed));
  for (const token of [accessToken, own]) {
    t.false(await opensApi(service, token));
    t.deepEqual((await ask(service, "introspect", renewed, { token })).body, { active: false });
  }
  t.is((await refresh(service, renewed, refreshToken)).body.error, "invalid_grant");
  t.is((await redeemCode(service, renewed, code)).body.error, "invalid_grant");
  t.true(await opensApi(service, foreign));
  t.true(await opensApi(service, await service.token(renewed)));
  t.true(await opensApi(service, (await newTokens(service, renewed, user)).accessToken));
});

test("sec 128: of tokens that are issued while the client is compromised none with the old secret lives", async (t) => {
  const { app } = await createApp(service);
  const asked = Array.from({ length: 20 }, () =>
    ask(service, "token", app, { grant_type: "client_credentials" }),
  );
  const rotated = rotate(app, 0, true);
  const answers = await Promise.all([
    ...asked,
    ...Array.from({ length: 20 }, () => ask(service, "token", app, { grant_type: "client_credentials" })),
  ]);
  await rotated;
  for (const { status, body } of answers) {
    t.true(status === 200 || status === 401);
    if (status === 200) t.false(await opensApi(service, body.access_token));
  }
});

test("sec 128: what the owner sees of a client is no secret", async (t) => {
  const { app } = await createApp(service);
  const renewed = await rotate(app);
  const view = JSON.stringify(await service.storage.clients.ofOrganization(app.id));
  for (const { clientSecret } of [app, renewed]) {
    t.false(view.includes(clientSecret));
    t.true(view.includes(clientSecret.slice(-4)));
  }
});
