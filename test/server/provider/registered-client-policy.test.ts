import { randomBytes } from "node:crypto";
import test from "ava";
import { browserOf, createTeam } from "../../harness/clients/dashboard.ts";
import { authorizeUrl, isAcceptedByApi, openConsent } from "../../harness/clients/oauth.ts";
import { connectRegistered, register, requestTokens } from "../../harness/clients/registration.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

const database = await createTestDatabase();
const shared = { DATABASE_URL: database.url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") };
const service = await startTestService({ ...shared, DYNAMIC_REGISTRATION: "stateless" });
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
  const page = await browser.open(`${service.url}${base}/apps`);
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
