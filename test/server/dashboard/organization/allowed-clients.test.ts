import { randomBytes } from "node:crypto";
import test from "ava";
import { isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import {
  authorizeUrlOf,
  connectDocument,
  type DocumentClient,
  postAsDocument,
} from "../../../harness/clients/document-client.ts";
import { tokensFor } from "../../../harness/clients/flow.ts";
import { isAcceptedByApi, openConsent } from "../../../harness/clients/oauth.ts";
import { register } from "../../../harness/clients/registration.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../../harness/database/test-database.ts";
import { startPublisher } from "../../../harness/publisher.ts";
import { startTestService } from "../../../harness/service.ts";

const publisher = await startPublisher(["claude.ai", "docs.example"]);
const database = await createTestDatabase();
const shared = { DATABASE_URL: database.url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") };
const settings = { ...shared, ...publisher.settings, CIMD: "any", DYNAMIC_REGISTRATION: "stateless" };
const service = await startTestService(settings, publisher.connections);
const REGISTERED: DocumentClient = await register(service, {
  client_name: "Claude",
  redirect_uris: ["https://agent.example/callback"],
});
test.after.always(async () => {
  publisher.close();
  await service.close();
  await database.drop();
});

const CLAUDE_CODE: DocumentClient = {
  clientId: "https://claude.ai/oauth/claude-code-client-metadata",
  redirectUri: "http://localhost:51234/callback",
};
const OTHER: DocumentClient = {
  clientId: "https://docs.example/client.json",
  redirectUri: "https://docs.example/callback",
};
publisher.publish(OTHER.clientId, {
  body: {
    client_id: OTHER.clientId,
    client_name: "Claude",
    redirect_uris: [OTHER.redirectUri],
    grant_types: ["authorization_code", "refresh_token"],
  },
});

type Allowed = "known" | "any" | "none";

async function createAllowing(allowed: Allowed) {
  const team = await createTeam(service);
  const path = `${team.base}/apps`;
  const allow = (allowed_clients: Allowed) => team.owner.api.send("PUT", path, { json: { allowed_clients } });
  if (allowed !== "known") await allow(allowed);
  return { ...team, path, page: `${service.url}${team.base}/settings`, allow };
}

const refresh = (client: DocumentClient, token: string) =>
  postAsDocument(service, "token", client, { grant_type: "refresh_token", refresh_token: token });

const MATRIX: [allowed: Allowed, client: DocumentClient, name: string, isAllowed: boolean][] = [
  ["known", CLAUDE_CODE, "a known client", true],
  ["known", OTHER, "another client", false],
  ["known", REGISTERED, "a registered client", false],
  ["any", CLAUDE_CODE, "a known client", true],
  ["any", OTHER, "another client", true],
  ["any", REGISTERED, "a registered client", true],
  ["none", CLAUDE_CODE, "a known client", false],
  ["none", OTHER, "another client", false],
  ["none", REGISTERED, "a registered client", false],
];
for (const [allowed, client, name, isAllowed] of MATRIX) {
  test(`an organization that allows ${allowed} ${isAllowed ? "offers" : "refuses"} consent for ${name}`, async (t) => {
    const { member } = await createAllowing(allowed);
    const page = await openConsent(new TestBrowser(service.url), member, authorizeUrlOf(service, client));
    t.is(page.text.includes('value="allow"'), isAllowed);
    t.is(page.text.includes("</bdi> doesn’t allow this app"), !isAllowed);
  });
}

for (const [stricter, name, client] of [
  ["none", "a known client", CLAUDE_CODE],
  ["none", "another client", OTHER],
  ["known", "another client", OTHER],
  ["known", "a registered client", REGISTERED],
] as const) {
  test(`changing to ${stricter} rejects the tokens of ${name}, until it is allowed again`, async (t) => {
    const { member, organization, allow } = await createAllowing("any");
    const tokens = await connectDocument(service, client, member, organization.id);
    t.true(await isAcceptedByApi(service, tokens.accessToken));
    await allow(stricter);
    t.false(await isAcceptedByApi(service, tokens.accessToken));
    const { status, body } = await refresh(client, tokens.refreshToken);
    t.is(status, 400);
    t.is(body.error, "unauthorized_client");
    t.is(body.error_description, "the user's organization does not allow this client");
    await allow("any");
    t.true(await isAcceptedByApi(service, tokens.accessToken));
    t.is((await refresh(client, tokens.refreshToken)).status, 200);
  });
}

test("a consent page that is open while the setting changes grants nothing", async (t) => {
  const { member, allow } = await createAllowing("any");
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, member, authorizeUrlOf(service, OTHER));
  await allow("none");
  const answer = await browser.press(page, "Allow");
  t.is(answer.status, 422);
  t.false(answer.url.startsWith(OTHER.redirectUri));
});

test("an organization that doesn't allow a client is not offered, and the page says so", async (t) => {
  const open = await createAllowing("any");
  const { organization } = await createAllowing("none");
  await service.storage.organizations.addMember(organization.id, open.member.id, "member", {
    id: "operator",
  });
  const page = await openConsent(new TestBrowser(service.url), open.member, authorizeUrlOf(service, OTHER));
  t.is(page.html.querySelector("[name=organization_id]")?.attributes.value, open.organization.id);
  t.regex(page.text, /Team<\/bdi> doesn’t allow this app/);
});

test("the client of an organization works with every setting", async (t) => {
  const app = await service.createOrganization();
  const { member, organization } = await createAllowing("none");
  const tokens = await tokensFor(service, app, member, { organizationId: organization.id });
  t.true(await isAcceptedByApi(service, tokens.access_token));
});

test("owners and admins change the setting, as JSON and as a form, and it is in the audit log", async (t) => {
  const { base, owner, admin, path, page: settings } = await createAllowing("known");
  t.is((await owner.api.send<{ allowed_clients: string }>("GET", path)).body.allowed_clients, "known");
  t.is((await admin.api.send("PUT", path, { json: { allowed_clients: "any" } })).status, 204);
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(settings);
  t.is(page.html.querySelector("select [selected]")?.attributes.value, "any");
  const saved = await browser.press(page, "Save settings", { allowed_clients: "none" });
  t.regex(saved.text, /Settings saved/);
  t.is(saved.url, `${settings}?done=app-policy-changed`);
  const { body } = await owner.api.send<{ data: { type: string; summary: string; data: object }[] }>(
    "GET",
    `${base}/audit`,
  );
  const type = "organization.allowed_clients_changed";
  t.deepEqual(
    body.data.filter((entry) => entry.type === type).map(({ data }) => data),
    [
      { from: "any", to: "none" },
      { from: "known", to: "any" },
    ],
  );
  t.is(body.data[0]?.summary, "changed the app policy from any to none");
});

test("members see the setting but can't change it", async (t) => {
  const { member, path, page: settings } = await createAllowing("known");
  const answer = await member.api.send("PUT", path, { json: { allowed_clients: "any" } });
  isProblem(t, answer, { status: 403, code: "role_required" });
  const { browser } = await browserOf(service, member);
  const page = await browser.open(settings);
  t.is(page.html.querySelector("select[name=allowed_clients]"), null);
  t.regex(page.text, /Accepted apps: known AI clients, which are Claude, Claude Code/);
});

test("the page says that apps of organizations can be connected with every setting", async (t) => {
  const { owner, member, page: settings } = await createAllowing("none");
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(settings);
  t.is(page.html.querySelector("select [selected]")?.text, "Only apps of organizations on this server");
  t.regex(page.text, /Apps of organizations on this server are always accepted/);
  const other = await browserOf(service, member);
  const seen = await other.browser.open(settings);
  t.regex(seen.text, /Accepted apps: only apps of organizations on this server/);
});

test("a form without a CSRF token changes nothing", async (t) => {
  const { owner, path, page: settings } = await createAllowing("known");
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(settings);
  const answer = await browser.press(page, "Save settings", { allowed_clients: "none", csrf: "" });
  t.is(answer.status, 403);
  t.is((await owner.api.send<{ allowed_clients: string }>("GET", path)).body.allowed_clients, "known");
});

for (const [code, json] of [
  ["invalid_allowed_clients", { allowed_clients: "all" }],
  ["unknown_field", { allowed_clients: "any", extra: 1 }],
] as const) {
  test(`${JSON.stringify(json)} is not a setting`, async (t) => {
    const { owner, path } = await createAllowing("known");
    const fields = [code === "unknown_field" ? "extra" : "allowed_clients"];
    isProblem(t, await owner.api.send("PUT", path, { json }), { status: 422, code, fields });
  });
}

test("a server that accepts known clients only offers no more", async (t) => {
  const strict = await startTestService();
  t.teardown(() => strict.close());
  const { owner, base } = await createTeam(strict);
  const answer = await owner.api.send("PUT", `${base}/apps`, { json: { allowed_clients: "any" } });
  t.is(answer.status, 422);
  t.regex(answer.text, /must be known or none/);
});

test("after a change of its settings, a server rejects the tokens of clients that it no longer accepts", async (t) => {
  const { member, organization } = await createAllowing("any");
  const known = await connectDocument(service, CLAUDE_CODE, member, organization.id);
  const other = await connectDocument(service, OTHER, member, organization.id);
  const registered = await connectDocument(service, REGISTERED, member, organization.id);
  const accepted = async (CIMD: string, DYNAMIC_REGISTRATION: string) => {
    const restarted = await startTestService({ ...shared, CIMD, DYNAMIC_REGISTRATION });
    t.teardown(() => restarted.close());
    // Its port, and so its resource, is another: the API would reject every token.
    const { findActiveToken } = restarted.storage;
    const found = await Promise.all(
      [known, other, registered].map(({ accessToken }) => findActiveToken(accessToken)),
    );
    return found.map((token) => token !== undefined);
  };
  t.deepEqual(await accepted("any", "stateless"), [true, true, true]);
  t.deepEqual(await accepted("known", "off"), [true, false, false]);
  t.deepEqual(await accepted("off", "stateless"), [false, false, true]);
});

test("apps with a document are listed by name and host, and marked once they are no longer allowed", async (t) => {
  type Apps = { data: { app: string; published_by: string | null; is_allowed: boolean }[] };
  const { member, owner, organization, path, allow } = await createAllowing("any");
  await connectDocument(service, CLAUDE_CODE, member, organization.id);
  await connectDocument(service, OTHER, member, organization.id);
  await allow("known");
  const { body } = await owner.api.send<Apps>("GET", path);
  t.deepEqual(
    body.data.map(({ app, published_by, is_allowed }) => [app, published_by, is_allowed]).toSorted(),
    [
      ["Claude Code", "claude.ai", true],
      // Its document claims another name.
      ["docs.example", "docs.example", false],
    ],
  );
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(service.url + path);
  t.is(page.text.split("not allowed").length, 2);
});
