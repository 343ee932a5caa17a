import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { browserOf } from "../../harness/clients/dashboard.ts";
import {
  allow,
  authorizeUrl,
  codeFor,
  createApp,
  isAcceptedByApi,
  openConsent,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
  sendForm,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const CREDENTIALS = { grant_type: "client_credentials" };
const setPlan = service.storage.organizations.setPlan;

async function needsPlan(token: string): Promise<boolean> {
  const answer = await fetch(`${service.url}/v1/organization`, { headers: bearer(token) });
  return answer.status === 403 && ((await answer.json()) as { code: string }).code === "plan_required";
}

test("a client on the Free plan gets 400 unauthorized_client wherever tokens are issued, after client authentication", async (t) => {
  const { app, user } = await createApp(service);
  const { refreshToken } = await runCodeFlow(service, app, user);
  const code = await codeFor(service, app, user);
  await setPlan(app.id, "free", OPERATOR);
  const wrongSecret = { ...app, clientSecret: "lgs_wrong" };
  for (const [endpoint, fields] of [
    ["token", CREDENTIALS],
    ["token", { grant_type: "refresh_token", refresh_token: refreshToken }],
    ["token", { grant_type: "authorization_code", code, code_verifier: "x".repeat(43) }],
    ["par", { response_type: "code" }],
  ] as const) {
    const authenticated = await postAsClient(service, endpoint, app, fields);
    t.is(authenticated.status, 400, endpoint);
    t.is(authenticated.body.error, "unauthorized_client", endpoint);
    const guess = await postAsClient(service, endpoint, wrongSecret, fields);
    t.is(guess.status, 401, endpoint);
    t.is(guess.body.error, "invalid_client", endpoint);
  }
});

test("on the Free plan a valid token gets plan_required at the API and is inactive at introspection", async (t) => {
  const { app, user } = await createApp(service);
  const { accessToken } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  await setPlan(app.id, "free", OPERATOR);
  for (const token of [accessToken, own]) {
    t.true(await needsPlan(token));
    t.deepEqual((await postAsClient(service, "introspect", app, { token })).body, { active: false });
  }
});

test("on the Free plan an authorization request of a signed-in user redirects with unauthorized_client", async (t) => {
  const { app, user } = await createApp(service);
  const { browser } = await browserOf(service, user);
  await setPlan(app.id, "free", OPERATOR);
  for (const changes of [{}, { scope: undefined }, { prompt: "none" }, { scope: "openid" }]) {
    const page = await browser.open(authorizeUrl(service, app, changes));
    const { searchParams, origin } = new URL(page.url);
    t.is(origin, "https://app.example.com", JSON.stringify(changes));
    t.is(searchParams.get("error"), "unauthorized_client", JSON.stringify(changes));
    t.is(searchParams.get("state"), "a-state", JSON.stringify(changes));
    t.is(searchParams.get("iss"), service.url, JSON.stringify(changes));
  }
});

test("on the Free plan an unregistered redirect URI still gets an error page", async (t) => {
  const { app } = await createApp(service);
  await setPlan(app.id, "free", OPERATOR);
  const url = authorizeUrl(service, app, { redirect_uri: "https://evil.example/" });
  const page = await new TestBrowser(service.url).open(url);
  t.is(page.status, 400);
  t.is(new URL(page.url).origin, service.url);
});

test("a client whose organization is downgraded while the consent page is open gets no code", async (t) => {
  const { app, own, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, user, authorizeUrl(service, app));
  await setPlan(app.id, "free", OPERATOR);
  const answer = await sendForm(browser, page, { decision: "allow", organization_id: own.id });
  const location = answer.headers.get("location");
  const end = location ? await browser.open(location) : undefined;
  t.is(new URL(end?.url ?? service.url).searchParams.get("error"), "unauthorized_client");
});

test("upgrading again restores the same client with its secret, tokens and redirect URIs", async (t) => {
  const { app, user } = await createApp(service);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  await setPlan(app.id, "free", OPERATOR);
  for (const plan of ["growth", "premium"] as const) {
    t.is((await setPlan(app.id, plan, OPERATOR))?.client, undefined, plan);
    t.is((await postAsClient(service, "token", app, CREDENTIALS)).status, 200, plan);
    t.true(await isAcceptedByApi(service, accessToken), plan);
    t.true(await isAcceptedByApi(service, own), plan);
    t.is((await refresh(service, app, refreshToken)).status, 200, plan);
    t.true((await allow(service, user, authorizeUrl(service, app))).searchParams.has("code"), plan);
  }
});

test("after a downgrade of the user's organization refreshes are rejected until it upgrades again", async (t) => {
  const { app, own, user } = await createApp(service);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  await setPlan(own.id, "free", OPERATOR);
  t.true(await needsPlan(accessToken));
  for (let round = 0; round < 3; round++) {
    const { status, body } = await refresh(service, app, refreshToken);
    t.is(status, 400);
    t.is(body.error, "unauthorized_client");
  }
  t.is((await postAsClient(service, "token", app, CREDENTIALS)).status, 200);
  await setPlan(own.id, "growth", OPERATOR);
  t.true(await isAcceptedByApi(service, accessToken));
  const { status, body } = await refresh(service, app, refreshToken);
  t.is(status, 200);
  t.true(await isAcceptedByApi(service, body.access_token));
});

test("a code for a downgraded organization is not redeemed", async (t) => {
  const { app, own, user } = await createApp(service);
  const code = await codeFor(service, app, user);
  await setPlan(own.id, "free", OPERATOR);
  const { status, body } = await redeemCode(service, app, code);
  t.is(status, 400);
  t.is(body.error, "unauthorized_client");
});

test("a downgrade doesn't affect other organizations", async (t) => {
  const { app, own, user } = await createApp(service);
  const bystander = await createApp(service);
  const { accessToken } = await runCodeFlow(service, bystander.app, bystander.user);
  await setPlan(own.id, "free", OPERATOR);
  await setPlan(app.id, "free", OPERATOR);
  t.true(await isAcceptedByApi(service, accessToken));
  t.is((await postAsClient(service, "token", bystander.app, CREDENTIALS)).status, 200);
  t.truthy(user.id);
});

test("an organization gets its client with its first upgrade, and only one under concurrency", async (t) => {
  const { id } = (await service.storage.organizations.create("Free", "free", OPERATOR)).organization;
  t.is(await service.storage.clients.findByOrganization(id), undefined);
  const upgrades = await Promise.all(Array.from({ length: 10 }, () => setPlan(id, "growth", OPERATOR)));
  const clients = upgrades.flatMap((change) => change?.client ?? []);
  t.is(clients.length, 1);
  const [client] = clients;
  if (client) t.regex(await service.token(client), /^lga_/);
});
