import test from "ava";
import type { GrantRow } from "../../../adapters/database/tables/oauth.ts";
import type { Role } from "../../../resources/access/scopes.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { allow, runCodeFlow } from "../../harness/clients/authorization.ts";
import {
  authorizeUrl,
  createApp,
  type Fields,
  REDIRECT_URI,
} from "../../harness/clients/authorization-request.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import { isAcceptedByApi, postAsClient, redeemCode, refresh } from "../../harness/clients/oauth.ts";
import { textsOn } from "../../harness/clients/pages.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { follow } from "../../harness/clients/visits.ts";
import { advanceClock, DAY_MS } from "../../harness/clock.ts";
import { startWithStorage } from "../../harness/database/service-storage.ts";
import type { TestOrganization, TestUser } from "../../harness/service.ts";

const LOOPBACK_URI = "http://127.0.0.1/callback";
const SCHEME_URI = "com.example.app:/callback";
const { service, knex } = await startWithStorage();

type Setup = Awaited<ReturnType<typeof allowedApp>>;

/** Creates an app that a user has allowed in a browser. `open` sends another request; returns where the browser ends. */
async function allowedApp(first: Fields = {}) {
  const created = await createApp(service, [REDIRECT_URI, LOOPBACK_URI, SCHEME_URI]);
  const browser = new TestBrowser(service.url);
  await allow(service, created.user, authorizeUrl(service, created.app, first), { browser });
  const open = async (changes: Fields = {}) =>
    new URL((await browser.open(authorizeUrl(service, created.app, changes))).url);
  return { ...created, browser, open };
}

const isAsked = ({ pathname }: URL) => pathname.startsWith("/interaction/");
const codeOf = (url: URL) => url.searchParams.get("code") ?? "";
const grantsOf = ({ id }: TestUser) =>
  knex("grants").where({ user_id: id }).whereNotNull("organization_id").orderBy("created_at");

test("the same request is not asked again, and its tokens work for the same organization", async (t) => {
  const { app, own, user, open } = await allowedApp({ scope: "openid links:write" });
  const url = await open({ scope: "openid links:write" });
  t.is(url.origin + url.pathname, REDIRECT_URI);
  const { status, body } = await redeemCode(service, app, codeOf(url));
  t.is(status, 200);
  t.is(body.scope, "openid links:write");
  t.true(await isAcceptedByApi(service, body.access_token));
  const organizations = (await grantsOf(user)).map(({ organization_id }) => organization_id);
  t.deepEqual(organizations, [own.id, own.id]);
  await postAsClient(service, "revoke", app, { token: String(body.refresh_token) });
  t.false(await isAcceptedByApi(service, body.access_token));
  t.not(codeOf(await open({ scope: "openid links:write" })), "", "the consent stays");
});

const REQUESTS: [first: Fields, then: Fields, outcome: "not asked" | "asked"][] = [
  [{ scope: "links:write" }, { scope: "links:read links:write" }, "not asked"],
  [{ scope: "links:write" }, { scope: "links:write admin:all" }, "not asked"],
  [{ scope: "openid links:write webhooks:read" }, { scope: "openid" }, "not asked"],
  [{ scope: "links:read links:write" }, { scope: undefined }, "not asked"],
  [{ resource: `${service.url}/v1` }, { resource: `${service.url}/v1/` }, "not asked"],
  [{ scope: "openid links:read" }, { scope: "openid links:read", prompt: "none" }, "not asked"],
  [{ redirect_uri: LOOPBACK_URI }, {}, "not asked"],
  [{ scope: "links:read" }, { scope: "links:write" }, "asked"],
  [{ scope: "links:write" }, { scope: "openid links:write" }, "asked"],
  [{ resource: `${service.url}/v1` }, {}, "asked"],
  [{ resource: `${service.url}/v1` }, { resource: `${service.url}/mcp` }, "asked"],
  [{}, { prompt: "consent" }, "asked"],
  [{}, { redirect_uri: LOOPBACK_URI }, "asked"],
  [{}, { redirect_uri: SCHEME_URI }, "asked"],
  [{ redirect_uri: LOOPBACK_URI }, { redirect_uri: LOOPBACK_URI }, "asked"],
];
for (const [first, then, outcome] of REQUESTS)
  test(`after ${JSON.stringify(first)}, ${JSON.stringify(then)} is ${outcome}`, async (t) => {
    const { user, open } = await allowedApp(first);
    const url = await open(then);
    t.is(isAsked(url), outcome === "asked");
    t.is(codeOf(url) === "", outcome === "asked");
    t.is((await grantsOf(user)).length, outcome === "asked" ? 1 : 2);
  });

test("consent is asked again if only two grants together cover the request; prompt=none gets consent_required", async (t) => {
  const { user, app, open, browser } = await allowedApp({ scope: "links:read" });
  await allow(service, user, authorizeUrl(service, app, { scope: "webhooks:read" }), { browser });
  const scope = "links:read webhooks:read";
  t.true(isAsked(await open({ scope })));
  t.is((await open({ scope, prompt: "none" })).searchParams.get("error"), "consent_required");
  t.is((await grantsOf(user)).length, 2);
});

test("with an id_token_hint the same user is signed in without a page, and no other user", async (t) => {
  const { app, own, browser, open } = await allowedApp({ scope: "openid" });
  const { body } = await redeemCode(service, app, codeOf(await open({ scope: "openid" })));
  const hint = String(body.id_token);
  t.not(codeOf(await open({ scope: "openid", prompt: "none", id_token_hint: hint })), "");
  const other = await service.createUser([own.id], undefined, "owner");
  await browser.signIn(await browser.open(authorizeUrl(service, app, { prompt: "login" })), other);
  const refused = await open({ scope: "openid", prompt: "none", id_token_hint: hint });
  t.is(refused.searchParams.get("error"), "login_required");
});

test("another user and another client are asked", async (t) => {
  const { app, own, browser } = await allowedApp();
  const other = await service.createUser([own.id], undefined, "owner");
  const elsewhere = new TestBrowser(service.url);
  const page = await elsewhere.signIn(await elsewhere.open(authorizeUrl(service, app)), other);
  t.regex(page.text, /<h1>Allow /);
  const second = await createApp(service);
  t.true(isAsked(new URL((await browser.open(authorizeUrl(service, second.app))).url)));
});

test("with prompt=login and in another browser, only the password is asked for", async (t) => {
  const { app, user, browser } = await allowedApp();
  for (const [index, one] of [browser, new TestBrowser(service.url)].entries()) {
    const page = await one.open(authorizeUrl(service, app, index === 0 ? { prompt: "login" } : {}));
    t.truthy(page.html.querySelector("#password"));
    t.is((await grantsOf(user)).length, 1 + index, "nothing is granted before the user has signed in");
    t.not(codeOf(new URL((await one.signIn(page, user)).url)), "");
    t.is((await grantsOf(user)).length, 2 + index);
  }
});

test("of several organizations, one that was allowed is used; with two of them the user is asked", async (t) => {
  const { app, own, user } = await createApp(service);
  const second = await service.createOrganization();
  await service.storage.organizations.addMember(second.id, user.id, "owner", OPERATOR);
  const browser = new TestBrowser(service.url);
  const open = async () => new URL((await browser.open(authorizeUrl(service, app))).url);
  await allow(service, user, authorizeUrl(service, app), { browser, organizationId: second.id });
  const { body } = await redeemCode(service, app, codeOf(await open()));
  const api = apiAt(service.url, String(body.access_token));
  t.is((await api.get<{ id: string }>("/v1/organization")).body.id, second.id);
  await allow(service, user, authorizeUrl(service, app), { browser, organizationId: own.id });
  t.true(isAsked(await open()));
});

const LOSSES: Record<string, (setup: Setup) => Promise<unknown>> = {
  async "the client revokes its only token"({ app, user }) {
    await knex("grants").where({ user_id: user.id }).update({ revoked_at: Date.now() });
    const { accessToken } = await runCodeFlow(service, app, user);
    await postAsClient(service, "revoke", app, { token: accessToken });
  },
  "the client's secret was compromised": ({ app }) =>
    service.storage.clients.rotateSecret(app.id, { overlapMs: 0, compromised: true }, OPERATOR),
  "the role no longer allows any scope": (setup) => changeRole(setup, "member"),
  // As grants without a consent page.
  "the consent isn't recorded": ({ user }) =>
    knex("grants").where({ user_id: user.id }).update({ consent_id: null, consented_at: null }),
};
for (const [what, lose] of Object.entries(LOSSES))
  test(`consent is asked again after ${what}`, async (t) => {
    const setup = await allowedApp({ scope: "webhooks:read" });
    await lose(setup);
    t.true(isAsked(await setup.open({ scope: "webhooks:read" })));
  });

function changeRole({ user, own }: Pick<Setup, "user" | "own">, role: Role) {
  return knex("memberships").where({ user_id: user.id, organization_id: own.id }).update({ role });
}

test("a lower role narrows what is granted without asking; a higher one doesn't widen it: the user is asked", async (t) => {
  const scope = "links:read webhooks:read";
  const setup = await allowedApp({ scope });
  await changeRole(setup, "member");
  const code = codeOf(await setup.open({ scope }));
  t.is((await redeemCode(service, setup.app, code)).body.scope, "links:read");

  const { app, own } = await createApp(service);
  const user = await service.createUser([own.id], undefined, "member");
  const browser = new TestBrowser(service.url);
  await allow(service, user, authorizeUrl(service, app, { scope }), { browser });
  const open = async () => new URL((await browser.open(authorizeUrl(service, app, { scope }))).url);
  t.not(codeOf(await open()), "");
  await changeRole({ user, own }, "admin");
  t.true(isAsked(await open()));
});

test("the apps page and the audit log have one consent once, and revoking it revokes everything that follows", async (t) => {
  const { app, own, user, open } = await allowedApp();
  const tokens = [];
  for (let times = 0; times < 3; times++)
    tokens.push((await redeemCode(service, app, codeOf(await open()))).body);
  const [first] = await grantsOf(user);
  const types = ["authorization.granted" as const];
  const [entry, ...others] = await service.storage.audit.list(own.id, { types }, 10);
  t.is(entry?.data.grant_id, first?.id);
  t.deepEqual(others, []);
  const api = apiAt(service.url, await firstPartyToken(service, user));
  const path = `/dashboard/organizations/${own.id}/apps`;
  const { body } = await api.get<{ data: { id: string; granted_at: string }[] }>(path);
  const listed = body.data.map(({ id, granted_at }) => `${id} ${Date.parse(granted_at)}`);
  t.deepEqual(listed, [`${first?.id} ${first?.created_at}`]);
  t.is((await api.send("DELETE", `${path}/${first?.id}`)).status, 204);
  for (const { access_token, refresh_token } of tokens) {
    t.false(await isAcceptedByApi(service, access_token));
    t.is((await refresh(service, app, String(refresh_token))).body.error, "invalid_grant");
  }
  t.true(isAsked(await open()));
  t.is((await api.send("DELETE", `${path}/${first?.id}`)).status, 404);
});

test("of a hundred authorizations that follow from a consent, the next one ends the least recently used", async (t) => {
  const { app, user, open } = await allowedApp();
  const used = await redeemCode(service, app, codeOf(await open()));
  const unused = await redeemCode(service, app, codeOf(await open()));
  const [consent, first, second] = (await grantsOf(user)) as [GrantRow, GrantRow, GrantRow];
  const created_at = Date.now() + 3600_000;
  const copies = Array.from({ length: 97 }, () => ({ ...second, id: crypto.randomUUID(), created_at }));
  for (const copy of copies) await knex("grants").insert(copy);
  const last_used_at = created_at + 1000;
  await knex("grants").where({ id: first.id }).update({ last_used_at });
  t.not(codeOf(await open()), "");
  t.is((await grantsOf(user)).length, 101, "the hundredth ends none");
  t.not(codeOf(await open({ prompt: "none" })), "");
  const ids = (await grantsOf(user)).map(({ id }) => id);
  t.is(ids.length, 101);
  t.true(ids.includes(consent.id) && ids.includes(first.id));
  t.false(ids.includes(second.id));
  t.true(await isAcceptedByApi(service, used.body.access_token));
  t.false(await isAcceptedByApi(service, unused.body.access_token));
  t.is((await refresh(service, app, String(unused.body.refresh_token))).body.error, "invalid_grant");
});

test.serial("a remembered consent ends 90 days after it was given, with its tokens", async (t) => {
  const { app, user } = await allowedApp();
  advanceClock(89 * DAY_MS);
  const browser = new TestBrowser(service.url);
  const url = await allow(service, user, authorizeUrl(service, app), { browser });
  const { body } = await redeemCode(service, app, codeOf(url));
  t.is((await grantsOf(user)).length, 2);
  const [first, second] = await grantsOf(user);
  t.is(second?.expires_at, first?.expires_at);
  advanceClock(DAY_MS);
  t.is((await refresh(service, app, String(body.refresh_token))).body.error, "invalid_grant");
  t.regex((await browser.open(authorizeUrl(service, app))).text, /<h1>Allow /);
});

const textOf = ({ html }: Page) => (html.querySelector("main")?.structuredText ?? "").replaceAll(/\s+/g, " ");

/** Whether the page says only what changed. */
function isBrief(page: Page): boolean {
  if (!/^Allow /.test(textsOn(page, "h1")[0] ?? "")) throw new Error(`no consent page: ${page.text}`);
  return / already has access to /.test(textOf(page));
}

/** Lets a user allow an app, and opens the consent page of its next request. */
async function askAgain(first: Fields, then = first) {
  const setup = await allowedApp(first);
  const ask = () => setup.browser.open(authorizeUrl(service, setup.app, { ...then, prompt: "consent" }));
  return { ...setup, ask, page: await ask() };
}

async function scopeAfter(browser: TestBrowser, page: Page, app: TestOrganization): Promise<string> {
  const code = codeOf(new URL((await browser.press(page, "Allow")).url));
  return String((await redeemCode(service, app, code)).body.scope);
}

test("an app that asks for the same again is allowed with one button, and gets the same", async (t) => {
  const { app, own, user, browser, page } = await askAgain({ scope: "links:read links:write" });
  t.true(isBrief(page));
  const sentence = `already has access to ${own.name} as ${user.username}, and asks for nothing new.`;
  t.true(textOf(page).includes(sentence));
  t.regex(textOf(page), /You’ll be redirected to/);
  t.deepEqual(textsOn(page, ".scopes li"), []);
  t.deepEqual(textsOn(page, "button"), ["Allow", "Cancel"]);
  t.is(await scopeAfter(browser, page, app), "links:read links:write");
});

test("what an app asks for in addition is listed, without what it already has", async (t) => {
  const scope = "openid links:read links:write webhooks:read";
  const { app, browser, page } = await askAgain({ scope: "openid links:write" }, { scope });
  t.true(isBrief(page));
  t.regex(textOf(page), /asks for more\. It will also be able to:/);
  t.deepEqual(textsOn(page, ".scopes li"), ["View webhooks"]);
  t.is(await scopeAfter(browser, page, app), scope);
});

test("fewer scopes are granted if fewer are requested", async (t) => {
  const first = { scope: "links:write webhooks:write" };
  const { app, browser, page } = await askAgain(first, { scope: "links:read" });
  t.regex(textOf(page), /asks for nothing new\./);
  t.is(await scopeAfter(browser, page, app), "links:read");
});

test("the whole request is one link away, and shown for an answer that isn't valid", async (t) => {
  const { app, browser, page } = await askAgain({ scope: "links:read" });
  const whole = await follow(browser, page, "Show all permissions");
  t.false(isBrief(whole));
  t.deepEqual(textsOn(whole, ".scopes li"), ["View links and their clicks"]);
  const refused = await browser.press(page, "Allow", { organization_id: "org_unknown" });
  t.is(refused.status, 422);
  t.false(isBrief(refused));
  t.is(await scopeAfter(browser, whole, app), "links:read");
});

test("another organization can be chosen, and after that the user chooses each time", async (t) => {
  const { user, app, own, browser, ask } = await askAgain({});
  const second = await service.createOrganization();
  await service.storage.organizations.addMember(second.id, user.id, "owner", OPERATOR);
  const page = await ask();
  t.true(isBrief(page));
  const { html } = await follow(browser, page, "Choose another organization");
  const choices = html.querySelectorAll("[name=organization_id]").map(({ attributes }) => attributes.value);
  t.deepEqual(choices.sort(), [own.id, second.id].sort());
  await allow(service, user, authorizeUrl(service, app), { browser, organizationId: second.id });
  t.false(isBrief(await ask()));
});

test("the whole request is shown if another resource is requested", async (t) => {
  const { page } = await askAgain({ resource: `${service.url}/v1` }, { resource: service.urls.mcp });
  t.false(isBrief(page));
});
