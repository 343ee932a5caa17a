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
const { app, own } = await createApp(service);
const second = await service.createOrganization();
const user = await service.createUser([own.id, second.id]);
test.after.always(() => service.close());

async function organizationOf(token: unknown): Promise<string> {
  const answer = await fetch(`${service.url}/v1/organization`, { headers: bearer(String(token)) });
  return ((await answer.json()) as { id: string }).id;
}

test("a person of two organizations chooses one, and the access is for that one", async (t) => {
  const person = new Person(service.url);
  for (const { id } of [second, own, second]) {
    const tokens = await newTokens(service, app, user, { person, organizationId: id });
    t.is(await organizationOf(tokens.accessToken), id);
    const { body } = await refresh(service, app, tokens.refreshToken);
    t.is(await organizationOf(body.access_token), id);
  }
});

test("the first organization is the one that is chosen beforehand", async (t) => {
  const person = new Person(service.url);
  const page = await openConsent(person, user, authorizeUrl(service, app));
  const radios = page.html.querySelectorAll("[type=radio]");
  t.deepEqual(
    radios.map((radio) => radio.attributes.value),
    [own.id, second.id],
  );
  t.is(radios.filter((radio) => radio.attributes.checked !== undefined).length, 1);
});

test("only own paid organizations can be chosen", async (t) => {
  const free = await service.createOrganization("Free", "free");
  const foreign = await service.createOrganization();
  const member = await service.createUser([own.id, free.id]);
  const person = new Person(service.url);
  for (const organization_id of [free.id, foreign.id, app.id, "org_nothing", "", undefined]) {
    const page = await openConsent(person, member, authorizeUrl(service, app));
    const answer = await sendForm(person, page, { decision: "allow", organization_id });
    t.is(answer.status, 422, String(organization_id));
    t.is(answer.headers.get("location"), null);
  }
});

test("the app's own organization is not acted for unless the person belongs to it", async (t) => {
  const person = new Person(service.url);
  const page = await openConsent(person, user, authorizeUrl(service, app));
  t.is(page.html.querySelector(`[value="${app.id}"]`), null);
  const insider = await service.createUser([app.id]);
  const { accessToken } = await newTokens(service, app, insider);
  t.is(await organizationOf(accessToken), app.id);
});

for (const [what, plans] of Object.entries({ "no organization": [], "free ones only": ["free"] as const })) {
  test(`a person with ${what} sees no Allow button, and cannot allow without it`, async (t) => {
    const ids: string[] = [];
    for (const plan of plans) ids.push((await service.createOrganization("Free", plan)).id);
    const lonely = await service.createUser(ids);
    const person = new Person(service.url);
    const page = await openConsent(person, lonely, authorizeUrl(service, app));
    t.deepEqual(
      page.html.querySelectorAll("button").map((button) => button.text.trim()),
      ["Cancel"],
    );
    for (const organization_id of [...ids, own.id, undefined]) {
      t.is((await sendForm(person, page, { decision: "allow", organization_id })).status, 422);
    }
    const end = new URL((await person.press(page, "Cancel")).url);
    t.is(end.searchParams.get("error"), "access_denied");
  });
}

test("an organization that stops paying while the page is open cannot be chosen", async (t) => {
  const passing = await service.createOrganization();
  const member = await service.createUser([passing.id]);
  const person = new Person(service.url);
  const page = await openConsent(person, member, authorizeUrl(service, app));
  await service.storage.organizations.setPlan(passing.id, "free", OPERATOR);
  const { status } = await sendForm(person, page, { decision: "allow", organization_id: passing.id });
  t.is(status, 422);
});

test("each authorization is a grant of its own: to end one leaves the other", async (t) => {
  const person = new Person(service.url);
  const first = await newTokens(service, app, user, { person, organizationId: own.id });
  const other = await newTokens(service, app, user, { person, organizationId: second.id });
  const same = await newTokens(service, app, user, { person, organizationId: own.id });
  t.is((await ask(service, "revoke", app, { token: first.refreshToken })).status, 200);
  t.false(await opensApi(service, first.accessToken));
  t.is((await refresh(service, app, first.refreshToken)).status, 400);
  for (const { accessToken, refreshToken } of [other, same]) {
    t.true(await opensApi(service, accessToken));
    t.is((await refresh(service, app, refreshToken)).status, 200);
  }
});

test("two authorizations under way in one browser do not mix", async (t) => {
  const person = new Person(service.url);
  await allow(service, user, authorizeUrl(service, app), { person });
  const one = await person.open(authorizeUrl(service, app, { state: "one", scope: "links:read" }));
  const two = await person.open(authorizeUrl(service, app, { state: "two", scope: "links:write" }));
  const ends = [
    await person.press(one, "Allow", { organization_id: own.id }),
    await person.press(two, "Allow", { organization_id: second.id }),
  ].map(({ url }) => new URL(url).searchParams);
  t.deepEqual(
    ends.map((query) => query.get("state")),
    ["one", "two"],
  );
  const answers = [];
  for (const query of ends) answers.push(await redeemCode(service, app, String(query.get("code"))));
  t.deepEqual(
    answers.map(({ body }) => body.scope),
    ["links:read", "links:write"],
  );
  t.is(await organizationOf(answers[0]?.body.access_token), own.id);
  t.is(await organizationOf(answers[1]?.body.access_token), second.id);
});

test("the id_token names the organization that was chosen", async (t) => {
  const code = await codeFor(service, app, user, {
    changes: { scope: "openid links:read" },
    organizationId: second.id,
  });
  const { body } = await redeemCode(service, app, code);
  const [, payload = ""] = String(body.id_token).split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString());
  t.is(claims.organization_id, second.id);
  t.is(claims.preferred_username, user.username);
  t.is(claims.aud, app.clientId);
});
