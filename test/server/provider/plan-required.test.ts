import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import {
  allow,
  ask,
  authorizeUrl,
  codeFor,
  createApp,
  newTokens,
  openConsent,
  opensApi,
  redeemCode,
  refresh,
  sendForm,
} from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { bearer, startTestService } from "../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const CREDENTIALS = { grant_type: "client_credentials" };
const setPlan = service.storage.organizations.setPlan;

async function planRequired(token: string): Promise<boolean> {
  const answer = await fetch(`${service.url}/v1/organization`, { headers: bearer(token) });
  return answer.status === 403 && ((await answer.json()) as { code: string }).code === "plan_required";
}

test("sec 60: on free a client gets 400 unauthorized_client wherever tokens are issued, after its secret", async (t) => {
  const { app, user } = await createApp(service);
  const { refreshToken } = await newTokens(service, app, user);
  const code = await codeFor(service, app, user);
  await setPlan(app.id, "free", OPERATOR);
  const wrong = { ...app, clientSecret: "lgs_wrong" };
  for (const [endpoint, fields] of [
    ["token", CREDENTIALS],
    ["token", { grant_type: "refresh_token", refresh_token: refreshToken }],
    ["token", { grant_type: "authorization_code", code, code_verifier: "x".repeat(43) }],
    ["par", { response_type: "code" }],
  ] as const) {
    const right = await ask(service, endpoint, app, fields);
    t.is(right.status, 400);
    t.is(right.body.error, "unauthorized_client");
    const guess = await ask(service, endpoint, wrong, fields);
    t.is(guess.status, 401);
    t.is(guess.body.error, "invalid_client");
  }
});

test("sec 60: on free a live token is plan_required at the API and inactive at introspection", async (t) => {
  const { app, user } = await createApp(service);
  const { accessToken } = await newTokens(service, app, user);
  const own = await service.token(app);
  await setPlan(app.id, "free", OPERATOR);
  for (const token of [accessToken, own]) {
    t.true(await planRequired(token));
    t.deepEqual((await ask(service, "introspect", app, { token })).body, { active: false });
  }
});

test("on free an authorization sends the person back with unauthorized_client", async (t) => {
  const { app } = await createApp(service);
  await setPlan(app.id, "free", OPERATOR);
  for (const changes of [{}, { scope: undefined }, { prompt: "none" }, { scope: "openid" }]) {
    const page = await new Person(service.url).open(authorizeUrl(service, app, changes));
    const { searchParams, origin } = new URL(page.url);
    t.is(origin, "https://app.example.com");
    t.is(searchParams.get("error"), "unauthorized_client");
    t.is(searchParams.get("state"), "a-state");
    t.is(searchParams.get("iss"), service.url);
  }
});

test("on free a wrong redirect URI gets a page all the same", async (t) => {
  const { app } = await createApp(service);
  await setPlan(app.id, "free", OPERATOR);
  const url = authorizeUrl(service, app, { redirect_uri: "https://evil.example/" });
  const page = await new Person(service.url).open(url);
  t.is(page.status, 400);
  t.is(new URL(page.url).origin, service.url);
});

test("an app that stops paying while the consent page is open gets no code", async (t) => {
  const { app, own, user } = await createApp(service);
  const person = new Person(service.url);
  const page = await openConsent(person, user, authorizeUrl(service, app));
  await setPlan(app.id, "free", OPERATOR);
  const answer = await sendForm(person, page, { decision: "allow", organization_id: own.id });
  const location = answer.headers.get("location");
  const end = location ? await person.open(location) : undefined;
  t.is(new URL(end?.url ?? service.url).searchParams.get("error"), "unauthorized_client");
});

test("upgrading again brings back the same client, with its secret, tokens and redirect URIs", async (t) => {
  const { app, user } = await createApp(service);
  const { accessToken, refreshToken } = await newTokens(service, app, user);
  const own = await service.token(app);
  await setPlan(app.id, "free", OPERATOR);
  for (const plan of ["growth", "premium"] as const) {
    t.is((await setPlan(app.id, plan, OPERATOR))?.client, undefined);
    t.is((await ask(service, "token", app, CREDENTIALS)).status, 200);
    t.true(await opensApi(service, accessToken));
    t.true(await opensApi(service, own));
    t.is((await refresh(service, app, refreshToken)).status, 200);
    t.true((await allow(service, user, authorizeUrl(service, app))).searchParams.has("code"));
  }
});

test("sec 60: an organization acted for that stops paying: refused, and the same refresh token is good again later", async (t) => {
  const { app, own, user } = await createApp(service);
  const { accessToken, refreshToken } = await newTokens(service, app, user);
  await setPlan(own.id, "free", OPERATOR);
  t.true(await planRequired(accessToken));
  for (let round = 0; round < 3; round++) {
    const { status, body } = await refresh(service, app, refreshToken);
    t.is(status, 400);
    t.is(body.error, "unauthorized_client");
  }
  t.is((await ask(service, "token", app, CREDENTIALS)).status, 200);
  await setPlan(own.id, "growth", OPERATOR);
  t.true(await opensApi(service, accessToken));
  const { status, body } = await refresh(service, app, refreshToken);
  t.is(status, 200);
  t.true(await opensApi(service, body.access_token));
});

test("a code for an organization that stopped paying is not redeemed", async (t) => {
  const { app, own, user } = await createApp(service);
  const code = await codeFor(service, app, user);
  await setPlan(own.id, "free", OPERATOR);
  const { status, body } = await redeemCode(service, app, code);
  t.is(status, 400);
  t.is(body.error, "unauthorized_client");
});

test("what one organization pays for is nothing to another one", async (t) => {
  const { app, own, user } = await createApp(service);
  const bystander = await createApp(service);
  const { accessToken } = await newTokens(service, bystander.app, bystander.user);
  await setPlan(own.id, "free", OPERATOR);
  await setPlan(app.id, "free", OPERATOR);
  t.true(await opensApi(service, accessToken));
  t.is((await ask(service, "token", bystander.app, CREDENTIALS)).status, 200);
  t.truthy(user.id);
});

test("an organization that was never on a paid plan has no client", async (t) => {
  const { id } = (await service.storage.organizations.create("Free", "free", OPERATOR)).organization;
  t.is(await service.storage.clients.ofOrganization(id), undefined);
  const upgrades = await Promise.all(Array.from({ length: 10 }, () => setPlan(id, "growth", OPERATOR)));
  const clients = upgrades.flatMap((change) => change?.client ?? []);
  t.is(clients.length, 1);
  const [client] = clients;
  if (client) t.regex(await service.token(client), /^lga_/);
});
