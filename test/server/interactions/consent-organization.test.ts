import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
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
const { app, own } = await createApp(service);
const second = await service.createOrganization();
const user = await service.createUser([own.id, second.id]);
test.after.always(() => service.close());

async function organizationOf(token: unknown): Promise<string> {
  const answer = await fetch(`${service.url}/v1/organization`, { headers: bearer(String(token)) });
  return ((await answer.json()) as { id: string }).id;
}

test("a member of two organizations selects one, and the tokens are for that one", async (t) => {
  const browser = new TestBrowser(service.url);
  for (const { id } of [second, own, second]) {
    const tokens = await runCodeFlow(service, app, user, { browser, organizationId: id });
    t.is(await organizationOf(tokens.accessToken), id);
    const { body } = await refresh(service, app, tokens.refreshToken);
    t.is(await organizationOf(body.access_token), id);
  }
});

test("the first organization is preselected", async (t) => {
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, user, authorizeUrl(service, app));
  const radios = page.html.querySelectorAll("[type=radio]");
  t.deepEqual(
    radios.map((radio) => radio.attributes.value),
    [own.id, second.id],
  );
  t.is(radios.filter((radio) => radio.attributes.checked !== undefined).length, 1);
});

test("only the user's own paid organizations can be selected", async (t) => {
  const free = await service.createOrganization("Free", "free");
  const foreign = await service.createOrganization();
  const member = await service.createUser([own.id, free.id]);
  const browser = new TestBrowser(service.url);
  for (const organization_id of [free.id, foreign.id, app.id, "org_nothing", "", undefined]) {
    const page = await openConsent(browser, member, authorizeUrl(service, app));
    const answer = await sendForm(browser, page, { decision: "allow", organization_id });
    t.is(answer.status, 422, String(organization_id));
    t.is(answer.headers.get("location"), null);
  }
});

test("the client's organization can be selected only by its members", async (t) => {
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, user, authorizeUrl(service, app));
  t.is(page.html.querySelector(`[value="${app.id}"]`), null);
  const insider = await service.createUser([app.id]);
  const { accessToken } = await runCodeFlow(service, app, insider);
  t.is(await organizationOf(accessToken), app.id);
});

for (const [what, plans] of Object.entries({
  "no organization": [],
  "only a Free plan organization": ["free"] as const,
})) {
  test(`a user with ${what} sees no Allow button and can't approve without it`, async (t) => {
    const ids: string[] = [];
    for (const plan of plans) ids.push((await service.createOrganization("Free", plan)).id);
    const visitor = await service.createUser(ids);
    const browser = new TestBrowser(service.url);
    const page = await openConsent(browser, visitor, authorizeUrl(service, app));
    t.deepEqual(
      page.html.querySelectorAll("button").map((button) => button.text.trim()),
      ["Cancel"],
    );
    for (const organization_id of [...ids, own.id, undefined]) {
      t.is((await sendForm(browser, page, { decision: "allow", organization_id })).status, 422);
    }
    const end = new URL((await browser.press(page, "Cancel")).url);
    t.is(end.searchParams.get("error"), "access_denied");
  });
}

test("an organization downgraded while the page is open can't be selected", async (t) => {
  const downgraded = await service.createOrganization();
  const member = await service.createUser([downgraded.id]);
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, member, authorizeUrl(service, app));
  await service.storage.organizations.setPlan(downgraded.id, "free", OPERATOR);
  const { status } = await sendForm(browser, page, { decision: "allow", organization_id: downgraded.id });
  t.is(status, 422);
});

test("each authorization creates its own grant, and revoking one keeps the others", async (t) => {
  const browser = new TestBrowser(service.url);
  const first = await runCodeFlow(service, app, user, { browser, organizationId: own.id });
  const other = await runCodeFlow(service, app, user, { browser, organizationId: second.id });
  const same = await runCodeFlow(service, app, user, { browser, organizationId: own.id });
  t.is((await postAsClient(service, "revoke", app, { token: first.refreshToken })).status, 200);
  t.false(await isAcceptedByApi(service, first.accessToken));
  t.is((await refresh(service, app, first.refreshToken)).status, 400);
  for (const { accessToken, refreshToken } of [other, same]) {
    t.true(await isAcceptedByApi(service, accessToken));
    t.is((await refresh(service, app, refreshToken)).status, 200);
  }
});

test("two concurrent authorizations in one browser stay separate", async (t) => {
  const browser = new TestBrowser(service.url);
  await allow(service, user, authorizeUrl(service, app), { browser });
  const one = await browser.open(
    authorizeUrl(service, app, { state: "one", scope: "links:read", prompt: "consent" }),
  );
  const two = await browser.open(
    authorizeUrl(service, app, { state: "two", scope: "links:write", prompt: "consent" }),
  );
  const ends = [
    await browser.press(one, "Allow", { organization_id: own.id }),
    await browser.press(two, "Allow", { organization_id: second.id }),
  ].map(({ url }) => new URL(url).searchParams);
  t.deepEqual(
    ends.map((query) => query.get("state")),
    ["one", "two"],
  );
  const responses = [];
  for (const query of ends) responses.push(await redeemCode(service, app, String(query.get("code"))));
  t.deepEqual(
    responses.map(({ body }) => body.scope),
    ["links:read", "links:write"],
  );
  t.is(await organizationOf(responses[0]?.body.access_token), own.id);
  t.is(await organizationOf(responses[1]?.body.access_token), second.id);
});

test("the id_token names the selected organization", async (t) => {
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
