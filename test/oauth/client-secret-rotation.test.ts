import test from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import {
  codeFor,
  createApp,
  isAcceptedByApi,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
} from "../harness/clients/oauth.ts";
import { advanceClock } from "../harness/clock.ts";
import type { TestOrganization } from "../harness/service.ts";
import { shareService } from "../harness/shared-service.ts";

const service = await shareService();

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

async function rotate(
  app: TestOrganization,
  overlapMs = 24 * HOUR,
  compromised = false,
): Promise<TestOrganization> {
  const rotation = await service.storage.clients.rotateSecret(app.id, { overlapMs, compromised }, OPERATOR);
  if (!rotation) throw new Error("no client");
  return { ...app, clientSecret: rotation.clientSecret };
}

/** Returns whether every endpoint accepts a secret. */
async function isAccepted(app: TestOrganization): Promise<boolean> {
  const statuses = new Set<number>();
  for (const [endpoint, fields] of [
    ["token", { grant_type: "client_credentials" }],
    ["revoke", { token: "x" }],
    ["introspect", { token: "x" }],
  ] as const) {
    statuses.add((await postAsClient(service, endpoint, app, fields)).status);
  }
  if (statuses.size !== 1) throw new Error(`the endpoints disagree: ${[...statuses]}`);
  return statuses.has(200);
}

test.serial("after a rotation both secrets are valid until the overlap ends", async (t) => {
  const { app } = await createApp(service);
  const renewed = await rotate(app);
  t.not(renewed.clientSecret, app.clientSecret);
  t.true(await isAccepted(app));
  t.true(await isAccepted(renewed));
  advanceClock(24 * HOUR - MINUTE);
  t.true(await isAccepted(app));
  advanceClock(2 * MINUTE);
  t.false(await isAccepted(app));
  t.true(await isAccepted(renewed));
  advanceClock(1000 * HOUR);
  t.true(await isAccepted(renewed));
});

test("a rotation doesn't revoke access tokens, codes or refresh tokens", async (t) => {
  const { app, user } = await createApp(service);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  const code = await codeFor(service, app, user);
  const renewed = await rotate(app, 0);
  t.true(await isAcceptedByApi(service, accessToken));
  t.true(await isAcceptedByApi(service, own));
  t.is((await refresh(service, renewed, refreshToken)).status, 200);
  t.is((await redeemCode(service, renewed, code)).status, 200);
  t.is((await refresh(service, app, refreshToken)).status, 401);
});

test("a rotation marked as compromised immediately revokes all older secrets and all tokens of the client", async (t) => {
  const { app, user } = await createApp(service);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  const code = await codeFor(service, app, user);
  const bystander = await createApp(service);
  const foreign = await service.token(bystander.app);
  const second = await rotate(app);
  const renewed = await rotate(app, 24 * HOUR, true);
  t.false(await isAccepted(app), "a compromised secret has no overlap");
  t.false(await isAccepted(second));
  t.true(await isAccepted(renewed));
  for (const token of [accessToken, own]) {
    t.false(await isAcceptedByApi(service, token));
    t.deepEqual((await postAsClient(service, "introspect", renewed, { token })).body, { active: false });
  }
  t.is((await refresh(service, renewed, refreshToken)).body.error, "invalid_grant");
  t.is((await redeemCode(service, renewed, code)).body.error, "invalid_grant");
  t.true(await isAcceptedByApi(service, foreign));
  t.true(await isAcceptedByApi(service, await service.token(renewed)));
  t.true(await isAcceptedByApi(service, (await runCodeFlow(service, renewed, user)).accessToken));
});
