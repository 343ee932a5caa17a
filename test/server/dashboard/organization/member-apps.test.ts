import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isMissing, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { REDIRECT_URI } from "../../../harness/clients/flow.ts";
import {
  allow,
  authorizeUrl,
  isAcceptedByApi,
  openConsent,
  refresh,
  runCodeFlow,
} from "../../../harness/clients/oauth.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { startTestService, type TestOrganization } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

type Approved = { id: string; client_id: string; app: string; approved_by: string };
type Apps = { member_apps: string; approved_apps: Approved[]; data: { is_allowed: boolean }[] };

/** Creates a team, and the client of another organization, as a member could register one. */
async function createTeamAndApp() {
  const team = await createTeam(service);
  const app = await service.createOrganization("Foreign app");
  await service.storage.clients.setRedirectUris(app.id, [REDIRECT_URI], OPERATOR);
  const path = `${team.base}/apps`;
  const setMemberApps = async (member_apps: string) => {
    const { status, text } = await team.owner.api.send("PUT", path, { json: { member_apps } });
    if (status !== 204) throw new Error(text);
  };
  const approve = async ({ clientId }: TestOrganization) =>
    (
      await team.admin.api.send<{ approved_app: Approved }>("POST", `${path}/approved`, {
        json: { client_id: clientId },
      })
    ).body.approved_app;
  const connect = (user: typeof team.member) =>
    runCodeFlow(service, app, user, { organizationId: team.organization.id });
  return { ...team, app, path, setMemberApps, approve, connect };
}

for (const [setting, reason] of [
  ["none", /Team<\/bdi> doesn’t let its members authorize apps/],
  ["approved", /Ask an owner or admin of <bdi>Team<\/bdi> to approve this app/],
] as const) {
  test(`with ${setting}, a member can't authorize the client of another organization, but an owner can`, async (t) => {
    const { app, member, owner, setMemberApps, connect } = await createTeamAndApp();
    await setMemberApps(setting);
    const browser = new TestBrowser(service.url);
    const page = await openConsent(browser, member, authorizeUrl(service, app));
    t.false(page.text.includes('value="allow"'));
    t.regex(page.text, reason);
    const { accessToken } = await connect(owner);
    t.true(await isAcceptedByApi(service, accessToken));
  });

  test(`changing to ${setting} ends the access of members' apps until it is changed back`, async (t) => {
    const { app, member, admin, setMemberApps, connect } = await createTeamAndApp();
    const [ofMember, ofAdmin] = [await connect(member), await connect(admin)];
    await setMemberApps(setting);
    t.false(await isAcceptedByApi(service, ofMember.accessToken));
    t.true(await isAcceptedByApi(service, ofAdmin.accessToken));
    const { status, body } = await refresh(service, app, ofMember.refreshToken);
    t.is(status, 400);
    t.is(body.error, "unauthorized_client");
    await setMemberApps("any");
    t.true(await isAcceptedByApi(service, ofMember.accessToken));
    t.is((await refresh(service, app, ofMember.refreshToken)).status, 200);
  });
}

test("a remembered consent grants nothing that the setting no longer allows", async (t) => {
  const { app, member, setMemberApps, connect } = await createTeamAndApp();
  await connect(member);
  const browser = new TestBrowser(service.url);
  t.truthy((await allow(service, member, authorizeUrl(service, app), { browser })).searchParams.get("code"));
  await setMemberApps("none");
  const asked = await browser.open(authorizeUrl(service, app));
  t.regex(asked.text, /doesn’t let its members authorize apps/);
});

test("a consent page that was opened before the setting changed grants nothing", async (t) => {
  const { app, member, setMemberApps } = await createTeamAndApp();
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, member, authorizeUrl(service, app));
  await setMemberApps("approved");
  const answer = await browser.press(page, "Allow");
  t.is(answer.status, 422);
  t.true(answer.url.startsWith(service.url));
});

test("members may authorize an approved app, which loses access when the approval is withdrawn", async (t) => {
  const { app, member, admin, path, setMemberApps, approve, connect } = await createTeamAndApp();
  await setMemberApps("approved");
  const approved = await approve(app);
  t.like(approved, { client_id: app.clientId, app: "Foreign app", approved_by: admin.username });
  t.deepEqual(await approve(app), approved);
  const { accessToken, refreshToken } = await connect(member);
  t.true(await isAcceptedByApi(service, accessToken));

  t.is((await admin.api.send("DELETE", `${path}/approved/${approved.id}`)).status, 204);
  t.false(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).body.error, "unauthorized_client");
  t.is((await admin.api.get<Apps>(path)).body.data[0]?.is_allowed, false);
  isMissing(t, await admin.api.send("DELETE", `${path}/approved/${approved.id}`));
});

test("a demoted owner's app loses access unless it is approved", async (t) => {
  const { app, owner, admin, base, path, setMemberApps, approve, connect } = await createTeamAndApp();
  const { accessToken } = await connect(admin);
  await setMemberApps("approved");
  t.true(await isAcceptedByApi(service, accessToken));
  await owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });
  t.false(await isAcceptedByApi(service, accessToken));
  await owner.api.send("POST", `${path}/approved`, { json: { client_id: app.clientId } });
  t.true(await isAcceptedByApi(service, accessToken));
  t.is(await approve(app), undefined as never, "the demoted admin can't approve");
});

test("an approval counts for its own organization only", async (t) => {
  const first = await createTeamAndApp();
  const second = await createTeamAndApp();
  await first.setMemberApps("approved");
  await second.setMemberApps("approved");
  await second.approve(first.app);
  const page = await openConsent(
    new TestBrowser(service.url),
    first.member,
    authorizeUrl(service, first.app),
  );
  t.false(page.text.includes('value="allow"'));
  const [foreign] = (await second.owner.api.get<Apps>(second.path)).body.approved_apps;
  isMissing(t, await first.owner.api.send("DELETE", `${first.path}/approved/${foreign?.id}`));
});

test("a member sends the approval link to an owner, who approves the app on its page", async (t) => {
  const { app, member, owner, base, path, setMemberApps } = await createTeamAndApp();
  await setMemberApps("approved");
  const page = await openConsent(new TestBrowser(service.url), member, authorizeUrl(service, app));
  const link = page.html.querySelector("form code")?.text ?? "";
  const refused = await browserOf(service, member);
  t.is((await refused.browser.open(link)).status, 403);
  const { browser } = await browserOf(service, owner);
  const review = await browser.open(link);
  t.regex(review.text, /Foreign app/);
  const done = await browser.press(review, "Approve app");
  t.regex(done.text, /App approved\./);
  t.is((await owner.api.get<Apps>(path)).body.approved_apps.length, 1);
  const after = await browser.press(done, "Withdraw approval of Foreign app");
  t.regex(after.text, /Approval withdrawn\./);
  const { body } = await owner.api.get<{ data: { type: string; summary: string }[] }>(
    `${base}/audit?category=changes`,
  );
  t.deepEqual(
    body.data.slice(0, 3).map(({ type, summary }) => [type, summary]),
    [
      ["app.approval_withdrawn", "withdrew the approval of an app of Foreign app"],
      ["app.approved", "approved an app of Foreign app for members"],
      ["organization.member_apps_changed", "changed which apps members may authorize from any to approved"],
    ],
  );
});

test("only IDs of apps can be approved", async (t) => {
  const { owner, path } = await createTeamAndApp();
  const ids = [
    "dashboard",
    "resource-server",
    "lgc_unknown",
    "https://localhost/client.json",
    "https://",
    "lgd_x",
    "",
    1,
  ];
  for (const client_id of ids) {
    const answer = await owner.api.send("POST", `${path}/approved`, { json: { client_id } });
    isProblem(t, answer, { status: 422, code: "invalid_client_id", fields: ["client_id"] });
  }
  const known = "https://claude.ai/oauth/claude-code-client-metadata";
  t.is((await owner.api.send("POST", `${path}/approved`, { json: { client_id: known } })).status, 201);
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

for (const [code, field, json] of [
  ["invalid_member_apps", "member_apps", { member_apps: "all" }],
  ["invalid_request", "", {}],
  ["unknown_field", "extra", { member_apps: "any", extra: 1 }],
] as const) {
  test(`${JSON.stringify(json)} is not a policy on members' apps`, async (t) => {
    const { owner, path } = await createTeamAndApp();
    isProblem(t, await owner.api.send("PUT", path, { json }), { status: 422, code, fields: [field] });
  });
}
