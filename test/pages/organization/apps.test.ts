import { randomBytes } from "node:crypto";
import test from "ava";
import type { z } from "zod";
import { ROLES } from "../../../resources/access/scopes.ts";
import { allowedClientsOn } from "../../../server/operations/apps.ts";
import type { authorizedAppSchema } from "../../../server/operations/schemas.ts";
import { readSettings } from "../../../server/settings/config.ts";
import { isMissing, isProblem } from "../../harness/clients/api.ts";
import { allow, openConsent, runCodeFlow, tokensFor } from "../../harness/clients/authorization.ts";
import { authorizeUrl, REDIRECT_URI } from "../../harness/clients/authorization-request.ts";
import { auditOf, createColleague, createTeam, openAs } from "../../harness/clients/dashboard.ts";
import type { DocumentClient } from "../../harness/clients/document-client.ts";
import { authorizeUrlOf, connectDocument, postAsDocument } from "../../harness/clients/document-client.ts";
import { isAcceptedByApi, refresh, register } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startPublisher } from "../../harness/publisher.ts";
import { OPERATOR, startTestService, type TestOrganization } from "../../harness/service.ts";
import { until } from "../../harness/webhooks.ts";

const publisher = await startPublisher(["claude.ai", "docs.example"]);
const database = await createTestDatabase();
const shared = { DATABASE_URL: database.url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") };
const settings = { ...shared, ...publisher.settings, CIMD: "any", DYNAMIC_REGISTRATION: "stateless" };
const service = await startTestService(settings, publisher.connections);
const REGISTERED: DocumentClient = await register(service, {
  client_name: "Claude",
  redirect_uris: ["https://agent.example/callback"],
});

const CLAUDE_CODE: DocumentClient = {
  clientId: "https://claude.ai/oauth/claude-code-client-metadata",
  redirectUri: "http://localhost:51234/callback",
};
const OTHER: DocumentClient = {
  clientId: "https://docs.example/client.json",
  redirectUri: "https://docs.example/callback",
};
const { clientId: client_id, redirectUri } = OTHER;
const grant_types = ["authorization_code", "refresh_token"];
const document = { client_id, client_name: "Claude", redirect_uris: [redirectUri], grant_types };
publisher.publish(client_id, { body: document });

type Approval = { approved_app: { id: string; client_id: string; app: string; approved_by: string } };
type Apps = { approved_apps: object[]; data: { is_allowed: boolean }[] };

/** Creates a team, and the client of another organization, as a member could register one. */
async function createTeamAndApp() {
  const team = await createTeam(service);
  const app = await service.createOrganization("Foreign app");
  await service.storage.clients.setRedirectUris(app.id, [REDIRECT_URI], OPERATOR);
  const path = `${team.base}/apps`;
  const setPolicy = async (json: { allowed_clients: string } | { member_apps: string }) => {
    const { status, text } = await team.owner.api.send("PUT", path, { json });
    if (status !== 204) throw new Error(text);
  };
  const approve = async ({ clientId }: TestOrganization) => {
    const json = { client_id: clientId };
    const { body } = await team.owner.api.send<Approval>("POST", `${path}/approved`, { json });
    return body.approved_app;
  };
  const connect = (user: typeof team.member) =>
    runCodeFlow(service, app, user, { organizationId: team.organization.id });
  return { ...team, app, path, setPolicy, approve, connect };
}

const refreshAs = (client: DocumentClient, token: string) =>
  postAsDocument(service, "token", client, { grant_type: "refresh_token", refresh_token: token });

const CLIENTS: Record<string, DocumentClient> = {
  "a known client": CLAUDE_CODE,
  "another client": OTHER,
  "a registered client": REGISTERED,
};
for (const [name, client] of Object.entries(CLIENTS))
  test(`consent for ${name}, and its tokens, follow each change of the setting`, async (t) => {
    const { setPolicy, ...team } = await createTeamAndApp();
    const { member, organization } = team;
    await setPolicy({ allowed_clients: "any" });
    const tokens = await connectDocument(service, client, member, organization.id);
    for (const allowed of ["known", "none", "any"] as const) {
      await setPolicy({ allowed_clients: allowed });
      const isAllowed = allowed === "any" || (allowed === "known" && client === CLAUDE_CODE);
      const page = await openConsent(new TestBrowser(service.url), member, authorizeUrlOf(service, client));
      t.is(page.text.includes('value="allow"'), isAllowed, allowed);
      t.is(page.text.includes("</bdi> doesn’t allow this app"), !isAllowed, allowed);
      t.is(await isAcceptedByApi(service, tokens.accessToken), isAllowed, allowed);
      if (isAllowed) continue;
      const { status, body } = await refreshAs(client, tokens.refreshToken);
      t.is(status, 400);
      t.is(body.error, "unauthorized_client");
      t.is(body.error_description, "the user's organization does not allow this client");
    }
    t.is((await refreshAs(client, tokens.refreshToken)).status, 200);
    const [entry] = await auditOf(team, "&type=organization.allowed_clients_changed");
    t.is(entry?.summary, "changed the app policy from none to any");
  });

test("the client of an organization works with every setting", async (t) => {
  const { member, connect, setPolicy } = await createTeamAndApp();
  await setPolicy({ allowed_clients: "none" });
  t.true(await isAcceptedByApi(service, (await connect(member)).accessToken));
});

test("a server that accepts known clients only offers no more, unless others can register", async (t) => {
  const strict = await startTestService();
  const { owner, base } = await createTeam(strict);
  const answer = await owner.api.send("PUT", `${base}/apps`, { json: { allowed_clients: "any" } });
  isProblem(t, answer, { status: 422, code: "invalid_allowed_clients", fields: ["allowed_clients"] });
  t.regex(answer.text, /must be known or none/);
  t.true(allowedClientsOn(readSettings({ DYNAMIC_REGISTRATION: "stateless" })).includes("any"));
});

test("after a change of its settings, a server rejects the tokens of clients that it no longer accepts", async (t) => {
  const { member, organization, setPolicy } = await createTeamAndApp();
  await setPolicy({ allowed_clients: "any" });
  const connected: { accessToken: string }[] = [];
  for (const client of Object.values(CLIENTS))
    connected.push(await connectDocument(service, client, member, organization.id));
  const accepted = async (CIMD: string, DYNAMIC_REGISTRATION: string) => {
    const restarted = await startTestService({ ...shared, CIMD, DYNAMIC_REGISTRATION });
    // Its port, and so its resource, is another: the API would reject every token.
    const { findActiveToken } = restarted.storage;
    const found = await Promise.all(connected.map(({ accessToken }) => findActiveToken(accessToken)));
    return found.map((token) => token !== undefined);
  };
  t.deepEqual(await accepted("any", "stateless"), [true, true, true]);
  t.deepEqual(await accepted("known", "off"), [true, false, false]);
  t.deepEqual(await accepted("off", "stateless"), [false, false, true]);
});

for (const [setting, reason] of [
  ["none", /Team<\/bdi> doesn’t let its members authorize apps/],
  ["approved", /Ask an owner or admin of <bdi>Team<\/bdi> to approve this app/],
] as const)
  test(`with ${setting}, members can't authorize the client of another organization, and it loses access`, async (t) => {
    const { app, member, admin, owner, setPolicy, connect } = await createTeamAndApp();
    const [ofMember, ofAdmin] = [await connect(member), await connect(admin)];
    await (await createTeamAndApp()).approve(app); // counts for the other organization only
    await setPolicy({ member_apps: setting });
    const page = await openConsent(new TestBrowser(service.url), member, authorizeUrl(service, app));
    t.false(page.text.includes('value="allow"'));
    t.regex(page.text, reason);
    t.false(await isAcceptedByApi(service, ofMember.accessToken));
    for (const { accessToken } of [ofAdmin, await connect(owner)])
      t.true(await isAcceptedByApi(service, accessToken));
    const { status, body } = await refresh(service, app, ofMember.refreshToken);
    t.is(status, 400);
    t.is(body.error, "unauthorized_client");
    await setPolicy({ member_apps: "any" });
    t.true(await isAcceptedByApi(service, ofMember.accessToken));
    t.is((await refresh(service, app, ofMember.refreshToken)).status, 200);
  });

test("neither a remembered consent nor a page that was opened before grants what the setting no longer allows", async (t) => {
  const { app, member, setPolicy } = await createTeamAndApp();
  const browser = new TestBrowser(service.url);
  t.truthy((await allow(service, member, authorizeUrl(service, app), { browser })).searchParams.get("code"));
  const page = await openConsent(browser, member, authorizeUrl(service, app));
  await setPolicy({ member_apps: "none" });
  const answer = await browser.press(page, "Allow");
  t.is(answer.status, 422);
  t.true(answer.url.startsWith(service.url));
  const asked = await browser.open(authorizeUrl(service, app));
  t.regex(asked.text, /doesn’t let its members authorize apps/);
});

test("an approval lets members and demoted admins use the app until it is withdrawn", async (t) => {
  const { app, owner, member, admin, base, path, setPolicy, approve, connect } = await createTeamAndApp();
  await setPolicy({ member_apps: "approved" });
  const ofAdmin = await connect(admin);
  t.true(await isAcceptedByApi(service, ofAdmin.accessToken));
  await owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });
  t.false(await isAcceptedByApi(service, ofAdmin.accessToken));

  const approved = await approve(app);
  t.like(approved, { client_id: app.clientId, app: "Foreign app", approved_by: owner.username });
  t.deepEqual(await approve(app), approved);
  const { accessToken, refreshToken } = await connect(member);
  for (const token of [ofAdmin.accessToken, accessToken]) t.true(await isAcceptedByApi(service, token));

  t.is((await owner.api.send("DELETE", `${path}/approved/${approved.id}`)).status, 204);
  for (const token of [ofAdmin.accessToken, accessToken]) t.false(await isAcceptedByApi(service, token));
  t.is((await refresh(service, app, refreshToken)).body.error, "unauthorized_client");
  t.is((await owner.api.get<Apps>(path)).body.data[0]?.is_allowed, false);
  isMissing(t, await owner.api.send("DELETE", `${path}/approved/${approved.id}`));
});

test("a member sends the approval link to an owner, who approves the app on its page", async (t) => {
  const { app, member, owner, base, path, setPolicy } = await createTeamAndApp();
  await setPolicy({ member_apps: "approved" });
  const page = await openConsent(new TestBrowser(service.url), member, authorizeUrl(service, app));
  const link = page.html.querySelector("form code")?.text ?? "";
  const address = link.replace(service.url, "");
  const { browser, page: review } = await openAs(service, owner, address);
  t.regex(review.text, /Foreign app/);
  const done = await browser.press(review, "Approve app");
  t.regex(done.text, /App approved\./);
  t.is((await owner.api.get<Apps>(path)).body.approved_apps.length, 1);
  const after = await browser.press(done, "Withdraw approval of Foreign app");
  t.regex(after.text, /Approval withdrawn\./);
  const summaries = (await auditOf({ base, owner }, "&category=changes")).map(({ summary }) => summary);
  t.deepEqual(summaries.slice(0, 3), [
    "withdrew the approval of an app of Foreign app",
    "approved an app of Foreign app for members",
    "changed which apps members may authorize from any to approved",
  ]);
});

test("only IDs of apps can be approved", async (t) => {
  const { owner, path } = await createTeamAndApp();
  const metadata = ["https://localhost/client.json", "https://", "lgd_x"];
  const ids = ["dashboard", "resource-server", "lgc_unknown", ...metadata, "", 1];
  for (const client_id of ids) {
    const answer = await owner.api.send("POST", `${path}/approved`, { json: { client_id } });
    isProblem(t, answer, { status: 422, code: "invalid_client_id", fields: ["client_id"] });
  }
  const json = { client_id: CLAUDE_CODE.clientId };
  t.is((await owner.api.send("POST", `${path}/approved`, { json })).status, 201);
});

test("an organization approves at most 100 apps, also concurrently", async (t) => {
  const { organization, owner, path } = await createTeamAndApp();
  const ids = Array.from({ length: 98 }, (_, index) => `https://app.example/${index}`);
  for (const id of ids) await service.storage.approvedApps.approve(organization.id, id, OPERATOR);
  const approve = (index: number) =>
    owner.api.send("POST", `${path}/approved`, { json: { client_id: `https://other.example/${index}` } });
  const answers = await Promise.all([0, 1, 2, 3, 3].map(approve));
  t.is((await owner.api.get<Apps>(path)).body.approved_apps.length, 100);
  t.true(answers.some(({ status }) => status === 409));
});

test("a server without an identity provider refuses enterprise-managed authorization", async (t) => {
  const { base, owner } = await createTeam(service);
  const path = `${base}/apps/enterprise-authorization`;
  const refused = await owner.api.send("PUT", path, { json: { enabled: true } });
  isProblem(t, refused, { status: 409, code: "no_identity_provider" });
  t.notRegex((await openAs(service, owner, `${base}/settings`)).page.html.text, /Enterprise-managed/);
});

type App = z.output<typeof authorizedAppSchema>;

/** Creates a team of which one user has authorized the app. */
async function withApp(scope = "links:read", who: "admin" | "member" = "member") {
  const team = await createTeamAndApp();
  const options = { organizationId: team.organization.id, parameters: { scope } };
  const { access_token: token } = await tokensFor(service, team.app, team[who], options);
  const look = async () => (await team.owner.api.get<{ data: App[] }>(team.path)).body.data;
  return { ...team, token, look };
}

test("an authorized app is listed with its user, its scopes without those that others include, and its last use", async (t) => {
  const granted = "links:write webhooks:read webhooks:write";
  const { app, organization, admin, look, token } = await withApp(granted, "admin");
  const [shown, ...others] = await look();
  t.is(others.length, 0);
  t.like(shown as object, {
    ...{ app: "Foreign app", client_id: app.clientId, last_used_at: null },
    user: { id: admin.id, username: admin.username },
    scopes: ["links:write", "webhooks:write"],
  });
  t.true(Date.parse(shown?.granted_at ?? "") <= Date.now());
  t.true(Date.parse(shown?.expires_at ?? "") > Date.now());
  t.true(await isAcceptedByApi(service, token));
  const lastUsed = await until(async () => (await look())[0]?.last_used_at ?? undefined);
  t.true(Math.abs(Date.parse(lastUsed) - Date.now()) < 60_000, lastUsed);
  const change = { organizationId: organization.id, userId: admin.id, role: "member" as const };
  await service.storage.members.changeRole({ ...change, manageableRoles: ROLES, actor: OPERATOR });
  t.deepEqual((await look())[0]?.scopes, ["links:write"], "what the role allows");
});

test("a member can't revoke the app of another user", async (t) => {
  const { organization, path, token, look } = await withApp();
  const [{ id } = { id: "" }] = await look();
  const other = await createColleague(service, organization.id, "member");
  isProblem(t, await other.api.send("DELETE", `${path}/${id}`), { status: 403, code: "role_required" });
  t.true(await isAcceptedByApi(service, token));
});

test("managers also see the client and the trust rules of the organization", async (t) => {
  const { organization, owner, member, path } = await withApp();
  const job = { name: "Deploy", issuer: "https://ci.example", subject: "job", audience: service.url };
  const rule = { ...job, claims: {}, scopes: ["links:read" as const] };
  await service.storage.trustRules.create(organization.id, rule, OPERATOR);
  const { page } = await openAs(service, owner, path);
  const rows = page.html.querySelectorAll("main table").at(-1)?.querySelectorAll("tbody tr");
  const [own, workload, ...others] = rows ?? [];
  t.is(others.length, 0);
  t.regex(own?.text ?? "", /^TTeam.*never/s);
  t.regex(workload?.text ?? "", /^Deploy.*ci\.example.*never/s);
  t.notRegex((await openAs(service, member, path)).page.text, /Your own API client/);
});
