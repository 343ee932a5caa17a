import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { challengesIn } from "../../harness/clients/challenge.ts";
import { athOf, createDpopKey, requestWithProof, signProof } from "../../harness/clients/dpop.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import {
  type Answer,
  codeFor,
  createApp,
  postAsClient,
  read,
  redeemCode,
  refresh,
  VERIFIER,
} from "../../harness/clients/oauth.ts";
import { bearer, startTestService, type TestOrganization } from "../../harness/service.ts";

const SECRET = "a-secret-of-the-resource-server-0123456789";
const service = await startTestService({ RESOURCE_SERVER_SECRET: SECRET });
const key = await createDpopKey();
const { organizationSettings } = service.storage;
test.after.always(() => service.close());

const RESOURCE_SERVER: TestOrganization = {
  id: "",
  name: "",
  clientId: "resource-server",
  clientSecret: SECRET,
};
const requireDpop = (organization: { id: string }, required = true) =>
  organizationSettings.change(organization.id, { requiresDpop: required }, OPERATOR);
const callApi = (token: unknown) =>
  read(fetch(`${service.url}/v1/links`, { headers: bearer(String(token)) }));

async function callWithProof(token: unknown) {
  const htu = `${service.url}/v1/links`;
  const dpop = await signProof(key, { claims: { htm: "GET", htu, ath: athOf(String(token)) } });
  return read(fetch(htu, { headers: { authorization: `DPoP ${token}`, dpop } }));
}

const DESCRIPTION = "the organization requires DPoP: send a proof in the DPoP header";
const isRefused = ({ status, body }: Answer) =>
  status === 400 && body.error === "invalid_dpop_proof" && body.error_description === DESCRIPTION;

test("the client of an organization that requires DPoP gets bound tokens only", async (t) => {
  const app = await service.createOrganization();
  await requireDpop(app);
  const request = () => postAsClient(service, "token", app, { grant_type: "client_credentials" });
  t.true(isRefused(await request()));
  const { body } = await requestWithProof(service, app, key);
  t.is(body.token_type, "DPoP");
  t.is((await callWithProof(body.access_token)).status, 200);
  await requireDpop(app, false);
  t.is((await request()).body.token_type, "Bearer");
});

for (const [which, index] of [
  ["of the client", "app"],
  ["that the app acts for", "own"],
] as const) {
  test(`if the organization ${which} requires DPoP, a code is redeemed with a proof, and survives without`, async (t) => {
    const made = await createApp(service);
    const { app, user } = made;
    await requireDpop(made[index]);
    const code = await codeFor(service, app, user);
    t.true(isRefused(await redeemCode(service, app, code)));
    const { status, body, text } = await requestWithProof(service, app, key, {
      fields: {
        grant_type: "authorization_code",
        code,
        redirect_uri: REDIRECT_URI,
        code_verifier: VERIFIER,
      },
    });
    t.is(status, 200, text);
    t.is((await callWithProof(body.access_token)).status, 200);
    const refresh_token = String(body.refresh_token);
    t.true(isRefused(await refresh(service, app, refresh_token)));
    const refreshed = await requestWithProof(service, app, key, {
      fields: { grant_type: "refresh_token", refresh_token },
    });
    t.is(refreshed.status, 200, refreshed.text);
    t.is((await callWithProof(refreshed.body.access_token)).status, 200);
  });

  test(`if the organization ${which} requires DPoP, earlier bearer tokens are refused everywhere`, async (t) => {
    const made = await createApp(service);
    const { app, user } = made;
    const code = await codeFor(service, app, user);
    const token = String((await redeemCode(service, app, code)).body.access_token);
    const { status } = await callApi(token);
    t.is(status, 200);
    await requireDpop(made[index]);

    const refused = await callApi(token);
    t.is(refused.status, 401);
    t.is(refused.body.code, "invalid_token");
    t.regex(String(refused.body.detail), /requires DPoP/);
    const { Bearer, DPoP } = challengesIn(refused.headers.get("www-authenticate") ?? "");
    t.is(Bearer?.error, "invalid_token");
    t.deepEqual(DPoP, { algs: "ES256 Ed25519 EdDSA" });
    t.is((await callWithProof(token)).status, 401);
    for (const client of [app, RESOURCE_SERVER]) {
      t.deepEqual((await postAsClient(service, "introspect", client, { token })).body, { active: false });
    }

    await requireDpop(made[index], false);
    t.is((await callApi(token)).status, 200);
    t.true((await postAsClient(service, "introspect", app, { token })).body.active);
  });
}

test("another client learns nothing about a code of an organization that requires DPoP", async (t) => {
  const { app, user } = await createApp(service);
  await requireDpop(app);
  const code = await codeFor(service, app, user);
  const other = await createApp(service);
  t.is((await redeemCode(service, other.app, code)).body.error, "invalid_grant");
});

test("a refresh without a proof uses nothing up", async (t) => {
  const { app, own, user } = await createApp(service);
  const code = await codeFor(service, app, user);
  const token = String((await redeemCode(service, app, code)).body.refresh_token);
  await requireDpop(own);
  for (let attempt = 0; attempt < 3; attempt++) t.true(isRefused(await refresh(service, app, token)));
  await requireDpop(own, false);
  t.is((await refresh(service, app, token)).status, 200);
});

test("claims are read with a proof", async (t) => {
  const { app, own, user } = await createApp(service);
  const code = () => codeFor(service, app, user, { changes: { scope: "openid" } });
  const unbound = String((await redeemCode(service, app, await code())).body.access_token);
  const { body } = await requestWithProof(service, app, key, {
    fields: {
      grant_type: "authorization_code",
      code: await code(),
      redirect_uri: REDIRECT_URI,
      code_verifier: VERIFIER,
    },
  });
  const htu = `${service.url}/oauth/userinfo`;
  const claims = async () => {
    const ath = athOf(String(body.access_token));
    const dpop = await signProof(key, { claims: { htm: "GET", htu, ath } });
    return read(fetch(htu, { headers: { authorization: `DPoP ${body.access_token}`, dpop } }));
  };
  const bare = async (token: unknown) => (await read(fetch(htu, { headers: bearer(String(token)) }))).status;
  t.is(await bare(unbound), 200);
  t.is(await bare(body.access_token), 401);
  await requireDpop(own);
  t.is(await bare(unbound), 401);
  const answer = await claims();
  t.is(answer.status, 200, answer.text);
  t.is(answer.body.sub, user.id);
});

test("a client may always revoke, with or without a proof", async (t) => {
  const app = await service.createOrganization();
  const token = await service.token(app);
  await requireDpop(app);
  t.is((await postAsClient(service, "revoke", app, { token })).status, 200);
  await requireDpop(app, false);
  t.is((await callApi(token)).status, 401);
});
