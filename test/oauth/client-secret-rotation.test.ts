import test from "ava";
import { codeFor, runCodeFlow } from "../harness/clients/authorization.ts";
import { createApp } from "../harness/clients/authorization-request.ts";
import { isAcceptedByApi, postAsClient, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { DAY_MS } from "../harness/clock.ts";
import { OPERATOR, startTestService, type TestOrganization } from "../harness/service.ts";

const service = await startTestService();

async function rotate(app: TestOrganization, overlapMs = DAY_MS, compromised = false) {
  const rotation = await service.storage.clients.rotateSecret(app.id, { overlapMs, compromised }, OPERATOR);
  if (!rotation) throw new Error("no client");
  return { ...app, clientSecret: rotation.clientSecret };
}

const isAccepted = async (app: TestOrganization) =>
  (await postAsClient(service, "token", app, { grant_type: "client_credentials" })).status === 200;

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
  const renewed = await rotate(app, DAY_MS, true);
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
