import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import type { GrantRow } from "../../../adapters/database/tables/oauth.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import {
  allow,
  authorizeUrl,
  createApp,
  type Fields,
  isAcceptedByApi,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

const LOOPBACK_URI = "http://127.0.0.1/callback";
const SCHEME_URI = "com.example.app:/callback";
const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
const { knex, close } = openDatabase(database.url);
test.after.always(async () => {
  await close();
  await service.close();
  await database.drop();
});

const DAY = 24 * 3600_000;
type App = Awaited<ReturnType<typeof createApp>>;
type Setup = App & { browser: TestBrowser; open(changes?: Fields): Promise<URL> };

/** Creates an app that a user has allowed in a browser. `open` sends another request; returns where the browser ends. */
async function allowedApp(first: Fields = {}): Promise<Setup> {
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
  const introspected = await postAsClient(service, "introspect", app, { token: String(body.access_token) });
  t.is(introspected.body.sub, user.id);
  const grants = await grantsOf(user);
  t.deepEqual(
    grants.map((grant) => grant.organization_id),
    [own.id, own.id],
  );
});

test("a user who signs in anew, in another browser, is not asked again", async (t) => {
  const { app, user } = await allowedApp();
  const browser = new TestBrowser(service.url);
  const page = await browser.open(authorizeUrl(service, app));
  t.truthy(page.html.querySelector("#password"));
  t.true(codeOf(new URL((await browser.signIn(page, user)).url)) !== "");
});

const COVERED: [first: Fields, then: Fields][] = [
  [{ scope: "links:write" }, { scope: "links:write" }],
  [{ scope: "links:write" }, { scope: "links:read" }],
  [{ scope: "links:write" }, { scope: "links:read links:write" }],
  [{ scope: "links:write" }, { scope: "links:write admin:all" }],
  [{ scope: "openid links:write webhooks:read" }, { scope: "openid" }],
  [{ scope: "links:read links:write" }, { scope: undefined }],
  [{}, { resource: `${service.url}/mcp` }],
  [{ resource: `${service.url}/v1` }, { resource: `${service.url}/v1/` }],
  [{ scope: "openid links:read" }, { scope: "openid links:read", prompt: "none" }],
  [{}, { redirect_uri: `${REDIRECT_URI}` }],
  [{ redirect_uri: LOOPBACK_URI }, {}],
];
for (const [first, then] of COVERED) {
  test(`after ${JSON.stringify(first)}, ${JSON.stringify(then)} is not asked`, async (t) => {
    const { open } = await allowedApp(first);
    t.not(codeOf(await open(then)), "");
  });
}

const NOT_COVERED: [first: Fields, then: Fields][] = [
  [{ scope: "links:read" }, { scope: "links:write" }],
  [{ scope: "links:write" }, { scope: "links:write webhooks:read" }],
  [{ scope: "links:write" }, { scope: "openid links:write" }],
  [{ resource: `${service.url}/v1` }, {}],
  [{ resource: `${service.url}/v1` }, { resource: `${service.url}/mcp` }],
  [{}, { prompt: "consent" }],
  [{ scope: "links:read offline_access" }, { scope: "links:read offline_access", prompt: "consent" }],
  [{}, { redirect_uri: LOOPBACK_URI }],
  [{}, { redirect_uri: "http://127.0.0.1:5000/callback" }],
  [{}, { redirect_uri: SCHEME_URI }],
  [{ redirect_uri: LOOPBACK_URI }, { redirect_uri: LOOPBACK_URI }],
];
for (const [first, then] of NOT_COVERED) {
  test(`after ${JSON.stringify(first)}, ${JSON.stringify(then)} is asked`, async (t) => {
    const { user, open } = await allowedApp(first);
    t.true(isAsked(await open(then)));
    t.is((await grantsOf(user)).length, 1);
  });
}

test("two consents that cover a request only together don't count", async (t) => {
  const { user, app, open, browser } = await allowedApp({ scope: "links:read" });
  await allow(service, user, authorizeUrl(service, app, { scope: "webhooks:read" }), { browser });
  t.true(isAsked(await open({ scope: "links:read webhooks:read" })));
});

test("with prompt=none a request that is not covered gets consent_required", async (t) => {
  const { user, open } = await allowedApp({ scope: "links:read" });
  const { searchParams } = await open({ scope: "links:write", prompt: "none" });
  t.is(searchParams.get("error"), "consent_required");
  t.is((await grantsOf(user)).length, 1);
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
  t.regex(page.text, /Allow access\?/);
  const second = await createApp(service);
  t.true(isAsked(new URL((await browser.open(authorizeUrl(service, second.app))).url)));
});

test("prompt=login asks for the password only", async (t) => {
  const { app, user, browser } = await allowedApp();
  const page = await browser.open(authorizeUrl(service, app, { prompt: "login" }));
  t.truthy(page.html.querySelector("#password"));
  t.is((await grantsOf(user)).length, 1, "nothing is granted before the user has signed in");
  t.not(codeOf(new URL((await browser.signIn(page, user)).url)), "");
  t.is((await grantsOf(user)).length, 2);
});

test("a pushed request is remembered as well", async (t) => {
  const { app, browser } = await allowedApp();
  const fields = Object.fromEntries(new URL(authorizeUrl(service, app)).searchParams);
  const { body } = await postAsClient(service, "par", app, fields);
  const query = new URLSearchParams({ client_id: app.clientId, request_uri: String(body.request_uri) });
  const { url } = await browser.open(`${service.url}/oauth/authorize?${query}`);
  t.not(codeOf(new URL(url)), "");
});

test("of several organizations, one that was allowed is used; with two of them the user is asked", async (t) => {
  const { app, own, user } = await createApp(service);
  const second = await service.createOrganization();
  await service.storage.organizations.addMember(second.id, user.id, "owner", OPERATOR);
  const browser = new TestBrowser(service.url);
  const open = async () => new URL((await browser.open(authorizeUrl(service, app))).url);
  await allow(service, user, authorizeUrl(service, app), { browser, organizationId: second.id });
  const { body } = await redeemCode(service, app, codeOf(await open()));
  const { body: organization } = await apiAt(service.url, String(body.access_token)).get<{ id: string }>(
    "/v1/organization",
  );
  t.is(organization.id, second.id);
  await allow(service, user, authorizeUrl(service, app), { browser, organizationId: own.id });
  t.true(isAsked(await open()));
});

type Loss = (setup: Setup) => Promise<unknown>;
const LOSSES: [what: string, lose: Loss][] = [
  ["the user revokes it on the apps page", (setup) => revokeOnAppsPage(setup)],
  [
    "the client revokes its only token",
    async ({ app, user }) => {
      const browser = new TestBrowser(service.url);
      await knex("grants").where({ user_id: user.id }).update({ revoked_at: Date.now() });
      const { accessToken } = await runCodeFlow(service, app, user, { browser });
      await postAsClient(service, "revoke", app, { token: accessToken });
    },
  ],
  [
    "the client's secret was compromised",
    ({ app }) => service.storage.clients.rotateSecret(app.id, { overlapMs: 0, compromised: true }, OPERATOR),
  ],
  [
    "the organization is downgraded",
    ({ own }) => service.storage.organizations.setPlan(own.id, "free", OPERATOR),
  ],
  [
    "the role no longer allows any scope",
    ({ own, user }) =>
      knex("memberships").where({ user_id: user.id, organization_id: own.id }).update({ role: "member" }),
  ],
];
for (const [what, lose] of LOSSES) {
  test(`consent is asked again after ${what}`, async (t) => {
    const setup = await allowedApp({ scope: "webhooks:read" });
    t.not(codeOf(await setup.open({ scope: "webhooks:read" })), "");
    await lose(setup);
    t.true(isAsked(await setup.open({ scope: "webhooks:read" })));
  });
}

async function revokeOnAppsPage({ own, user }: Setup) {
  const api = apiAt(service.url, await firstPartyToken(service, user));
  const path = `/dashboard/organizations/${own.id}/apps`;
  const { body } = await api.get<{ data: { id: string }[] }>(path);
  for (const { id } of body.data) await api.send("DELETE", `${path}/${id}`);
}

test("a lower role narrows what is granted without asking", async (t) => {
  const { app, own, user, open } = await allowedApp({ scope: "links:read webhooks:read" });
  await knex("memberships").where({ user_id: user.id, organization_id: own.id }).update({ role: "member" });
  const { body } = await redeemCode(service, app, codeOf(await open({ scope: "links:read webhooks:read" })));
  t.is(body.scope, "links:read");
});

test("a higher role does not widen what was allowed: the user is asked", async (t) => {
  const { app, own } = await createApp(service);
  const member = await service.createUser([own.id], undefined, "member");
  const url = authorizeUrl(service, app, { scope: "links:read webhooks:read" });
  const browser = new TestBrowser(service.url);
  await allow(service, member, url, { browser });
  t.not(codeOf(new URL((await browser.open(url)).url)), "");
  await knex("memberships").where({ user_id: member.id }).update({ role: "admin" });
  t.true(isAsked(new URL((await browser.open(url)).url)));
});

test("each authorization has its own tokens: revoking one leaves the others, and the consent", async (t) => {
  const { app, open } = await allowedApp();
  const [first, second] = [
    await redeemCode(service, app, codeOf(await open())),
    await redeemCode(service, app, codeOf(await open())),
  ];
  await postAsClient(service, "revoke", app, { token: String(first.body.refresh_token) });
  t.false(await isAcceptedByApi(service, first.body.access_token));
  t.true(await isAcceptedByApi(service, second.body.access_token));
  t.not(codeOf(await open()), "");
});

test("the apps page lists one consent once, since it was given, and revokes everything that follows from it", async (t) => {
  const setup = await allowedApp();
  const { app, own, user, open } = setup;
  const tokens = [];
  for (let times = 0; times < 3; times++) {
    const { body } = await redeemCode(service, app, codeOf(await open()));
    t.true(await isAcceptedByApi(service, body.access_token));
    tokens.push(body);
  }
  const api = apiAt(service.url, await firstPartyToken(service, user));
  const path = `/dashboard/organizations/${own.id}/apps`;
  const { body } = await api.get<{ data: { id: string; granted_at: string; expires_at: string }[] }>(path);
  const [first] = await grantsOf(user);
  t.is(body.data.length, 1);
  t.is(body.data[0]?.id, first?.id);
  t.is(Date.parse(String(body.data[0]?.granted_at)), Number(first?.created_at));
  const page = await setup.browser.open(service.url + path);
  const [apps] = page.html.querySelectorAll("main tbody");
  t.is(apps?.querySelectorAll("tr").length, 1);
  t.is((await api.send("DELETE", `${path}/${first?.id}`)).status, 204);
  for (const { access_token, refresh_token } of tokens) {
    t.false(await isAcceptedByApi(service, access_token));
    t.is((await refresh(service, app, String(refresh_token))).body.error, "invalid_grant");
  }
  t.true(isAsked(await open()));
  t.is((await api.send("DELETE", `${path}/${first?.id}`)).status, 404);
});

test("the audit log has one entry for a consent that is remembered many times", async (t) => {
  const { own, user, open } = await allowedApp();
  for (let times = 0; times < 3; times++) t.not(codeOf(await open({ prompt: "none" })), "");
  const types = ["authorization.granted" as const];
  const [entry, ...others] = await service.storage.audit.list(own.id, { types }, 10);
  const [granted] = await grantsOf(user);
  t.is(entry?.data.grant_id, granted?.id);
  t.deepEqual(others, []);
});

test("of a hundred authorizations that follow from a consent, the next one ends the least recently used", async (t) => {
  const { app, user, open } = await allowedApp();
  const [used, unused] = [
    await redeemCode(service, app, codeOf(await open())),
    await redeemCode(service, app, codeOf(await open())),
  ];
  const [consent, first, second] = (await grantsOf(user)) as [GrantRow, GrantRow, GrantRow];
  const created_at = Date.now() + 3600_000;
  const copies = Array.from({ length: 97 }, () => ({ ...second, id: crypto.randomUUID(), created_at }));
  for (const copy of copies) await knex("grants").insert(copy);
  await knex("grants")
    .where({ id: first.id })
    .update({ last_used_at: created_at + 1000 });
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
  advanceClock(89 * DAY);
  const browser = new TestBrowser(service.url);
  const url = await allow(service, user, authorizeUrl(service, app), { browser });
  const { body } = await redeemCode(service, app, codeOf(url));
  t.is((await grantsOf(user)).length, 2);
  const [first, second] = await grantsOf(user);
  t.is(second?.expires_at, first?.expires_at);
  advanceClock(DAY);
  t.is((await refresh(service, app, String(body.refresh_token))).body.error, "invalid_grant");
  const page = await browser.open(authorizeUrl(service, app));
  t.regex(page.text, /Allow access\?/);
});

test("grants without a consent page are not remembered", async (t) => {
  const { user, open } = await allowedApp();
  await knex("grants").where({ user_id: user.id }).update({ consent_id: null, consented_at: null });
  t.true(isAsked(await open()));
});
