import { randomBytes } from "node:crypto";
import test from "ava";
import { browserOf, createTeam } from "../../harness/clients/dashboard.ts";
import { authorizeUrl, isAcceptedByApi, openConsent, read } from "../../harness/clients/oauth.ts";
import { connectRegistered, register, requestTokens } from "../../harness/clients/registration.ts";
import { createSelfRegisteringHost } from "../../harness/clients/self-registering.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { bearer, postForm, startTestService } from "../../harness/service.ts";

const database = await createTestDatabase();
const shared = { DATABASE_URL: database.url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") };
const RESOURCE_SERVER_SECRET = "r".repeat(43);
const service = await startTestService({
  ...shared,
  DYNAMIC_REGISTRATION: "stateless",
  RESOURCE_SERVER_SECRET,
});

const DAY_MS = 24 * 60 * 60 * 1000;
const REDIRECT_URI = "http://127.0.0.1/callback";
const organization = await service.createOrganization();
const user = await service.createUser([organization.id], undefined, "owner");

test.after.always(async () => {
  await service.close();
  await database.drop();
});

type Allowed = "known" | "any" | "none";

const CURSOR = [
  "http://localhost:8787/callback",
  "https://www.cursor.com/agents/mcp/oauth/callback",
  "cursor://anysphere.cursor-mcp/oauth/callback",
];
const VS_CODE = [
  "https://insiders.vscode.dev/redirect",
  "https://vscode.dev/redirect",
  "http://127.0.0.1/",
  "http://127.0.0.1:33418/",
];
const LOCAL = ["http://127.0.0.1/callback", "http://localhost/callback", "http://[::1]/callback"];
const WEBSITE = "https://agent.example/callback";

async function createAllowing(allowed: Allowed) {
  const team = await createTeam(service);
  const allow = (allowed_clients: Allowed) =>
    team.owner.api.send("PUT", `${team.base}/apps`, { json: { allowed_clients } });
  if (allowed !== "known") await allow(allowed);
  return { ...team, allow };
}

const MATRIX: [allowed: Allowed, what: string, redirectUris: string[], isAllowed: boolean][] = [
  ["known", "Cursor", CURSOR, true],
  ["known", "Visual Studio Code", VS_CODE, true],
  ["known", "an app on loopback", LOCAL, true],
  ["known", "an app with a website", [WEBSITE], false],
  ["known", "an app with a website besides loopback", [...LOCAL, WEBSITE], false],
  ["known", "an app with another page of a known website", [`${VS_CODE[1]}/other`], false],
  ["known", "an app with a private-use scheme", ["com.example.app:/callback"], false],
  ["any", "Cursor", CURSOR, true],
  ["any", "an app with a website", [WEBSITE], true],
  ["any", "an app with a private-use scheme", ["com.example.app:/callback"], true],
  ["none", "Cursor", CURSOR, false],
  ["none", "an app on loopback", LOCAL, false],
];

for (const [allowed, what, redirect_uris, isAllowed] of MATRIX) {
  test(`an organization that allows ${allowed} ${isAllowed ? "offers" : "refuses"} consent for ${what}`, async (t) => {
    const { member } = await createAllowing(allowed);
    const { clientId, redirectUri } = await register(service, { client_name: "Claude", redirect_uris });
    const url = authorizeUrl(service, { clientId }, { redirect_uri: redirectUri });
    const page = await openConsent(new TestBrowser(service.url), member, url);
    t.is(page.text.includes('value="allow"'), isAllowed);
    t.is(page.text.includes("</bdi> doesn’t allow this app"), !isAllowed);
  });
}

for (const [stricter, redirect_uris] of [
  ["none", CURSOR],
  ["known", [WEBSITE]],
] as const) {
  test(`a change to ${stricter} ends the access of ${redirect_uris[0]} immediately, and a change back restores it`, async (t) => {
    const { allow, member } = await createAllowing("any");
    const client = await register(service, { redirect_uris: [...redirect_uris] });
    const { body } = await connectRegistered(service, client, member, { resource: service.url });
    const access = body.access_token;
    const refreshed = () =>
      requestTokens(service, client, {
        grant_type: "refresh_token",
        refresh_token: String(body.refresh_token),
      });
    t.true(await isAcceptedByApi(service, access));
    await allow(stricter);
    t.false(await isAcceptedByApi(service, access));
    t.not((await refreshed()).status, 200);
    await allow("any");
    t.true(await isAcceptedByApi(service, access));
    t.is((await refreshed()).status, 200);
  });
}

test("with registration on, an owner may allow any app, and the page says which ones count as known", async (t) => {
  const { base, owner } = await createAllowing("known");
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(`${service.url}${base}/settings`);
  t.truthy(page.html.querySelector('option[value="any"]'));
  t.regex(page.text, /register themselves count as known/);
});

test("when the operator turns registration off, registered clients are unknown and their access ends", async (t) => {
  const { member } = await createAllowing("any");
  const client = await register(service, { redirect_uris: LOCAL });
  const { body } = await connectRegistered(service, client, member);
  const restartWith = async (DYNAMIC_REGISTRATION: string) => {
    const restarted = await startTestService({ ...shared, DYNAMIC_REGISTRATION });
    t.teardown(() => restarted.close());
    const url = authorizeUrl(restarted, client, { redirect_uri: client.redirectUri });
    const { status } = await fetch(url, { redirect: "manual" });
    // Its port, and so its resource, is another: the API would reject every token.
    const token = await restarted.storage.findActiveToken(String(body.access_token));
    return { isKnown: status === 303, isAccepted: token !== undefined };
  };
  t.deepEqual(await restartWith("off"), { isKnown: false, isAccepted: false });
  t.deepEqual(await restartWith("stateless"), { isKnown: true, isAccepted: true });
});

test.serial(
  "a registration expires after 90 days, and the user and the app get an error that says so",
  async (t) => {
    const client = await register(service, { redirect_uris: [REDIRECT_URI] });
    const authorize = () =>
      fetch(authorizeUrl(service, client, { redirect_uri: REDIRECT_URI }), { redirect: "manual" });
    advanceClock(90 * DAY_MS - 1000);
    t.is((await authorize()).status, 303);
    advanceClock(DAY_MS + 1000);
    const page = await authorize();
    t.is(page.status, 400);
    t.is(page.headers.get("location"), null);
    t.regex(await page.text(), /Registration expired/);
    const fields = { grant_type: "refresh_token", refresh_token: "lgr_unknown" };
    const { body } = await requestTokens(service, client, fields);
    t.is(body.error, "invalid_client");
    t.regex(String(body.error_description), /registration of the client has expired/);
    const revocation = { client_id: client.clientId, token: "lga_unknown" };
    t.is(
      (await postForm(`${service.url}/oauth/revoke`, revocation)).status,
      200,
      "it may still end its access",
    );
  },
);

test.serial("an access token outlives the registration, also for introspection and userinfo", async (t) => {
  const client = await register(service, { redirect_uris: [REDIRECT_URI] });
  advanceClock(90 * DAY_MS);
  const { body } = await connectRegistered(service, client, user, {
    resource: service.url,
    scope: "openid links:read",
  });
  const token = String(body.access_token);
  // The registration ends with a day (UTC).
  advanceClock(DAY_MS - (Date.now() % DAY_MS) - 30 * 60_000);
  const renewed = await requestTokens(service, client, {
    grant_type: "refresh_token",
    refresh_token: String(body.refresh_token),
  });
  t.is(renewed.status, 200, token);
  advanceClock(45 * 60_000);
  const access = String(renewed.body.access_token);
  const authorize = authorizeUrl(service, client, { redirect_uri: REDIRECT_URI });
  t.is((await fetch(authorize, { redirect: "manual" })).status, 400);
  const { status } = await fetch(`${service.url}/v1/organization`, { headers: bearer(access) });
  t.is(status, 200);
  const fields = { client_id: "resource-server", client_secret: RESOURCE_SERVER_SECRET, token: access };
  const introspected = await read(postForm(`${service.url}/oauth/introspect`, fields));
  t.true(introspected.body.active, introspected.text);
  const { userinfo_endpoint } = (await read(fetch(`${service.url}/.well-known/openid-configuration`))).body;
  const userinfo = await read(fetch(String(userinfo_endpoint), { headers: bearer(access) }));
  t.is(userinfo.body.sub, user.id, userinfo.text);
});

test.serial("the MCP SDK's client registers again when its registration has expired", async (t) => {
  const host = createSelfRegisteringHost(service, user);
  await (await host.connect()).close();
  const first = host.state.client?.client_id;
  advanceClock(91 * DAY_MS);
  const client = await host.connect();
  const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
  t.like(structuredContent, { client_id: host.state.client?.client_id, user_id: user.id });
  t.not(host.state.client?.client_id, first);
  await client.close();
});
