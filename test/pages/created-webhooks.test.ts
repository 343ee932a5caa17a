import test, { type ExecutionContext } from "ava";
import { apiAt, isMissing } from "../harness/clients/api.ts";
import { tokensFor } from "../harness/clients/authorization.ts";
import { browserOf, createTeam, openAs } from "../harness/clients/dashboard.ts";
import { isAcceptedByApi } from "../harness/clients/oauth.ts";
import { OPERATOR, startTestService, type TestOrganization, type TestUser } from "../harness/service.ts";
import { createWebhook, uniqueUrl } from "../harness/webhooks.ts";

const service = await startTestService();
const { webhooks, grants, audit, suspensions, organizationSettings } = service.storage;
const app = await service.createOrganization("Reports");
const otherApp = await service.createOrganization("Alerts");

const CHECKED = { delete_webhooks: true };

/**
 * Creates a team whose admin has webhooks: created with an app, with another app, and in the dashboard. The owner has one
 * that was created with the same app.
 */
async function createWebhooks() {
  const team = await createTeam(service);
  const { organization, base, owner, admin } = team;
  const createWith = async (client: TestOrganization, user: TestUser) => {
    const { access_token: token } = await tokensFor(service, client, user, {
      organizationId: organization.id,
      parameters: { scope: "links:write webhooks:write" },
    });
    const api = apiAt(service.url, token);
    return { token, api, id: (await createWebhook(api, uniqueUrl())).id };
  };
  const { token, api, id } = await createWith(app, admin);
  const link = await api.createLink();
  const json = { url: uniqueUrl(), events: ["link.created"] };
  const ids: Record<string, string> = {
    byApp: id,
    byOtherApp: (await createWith(otherApp, admin)).id,
    byOwner: (await createWith(app, owner)).id,
    own: (await admin.api.send<{ id: string }>("POST", `${base}/webhooks`, { json })).body.id,
  };
  const grant = (await grants.listByOrganization(organization.id)).find(
    ({ userId, clientId }) => userId === admin.id && clientId === app.clientId,
  );
  const remaining = async () => {
    const left = new Set((await webhooks.list(organization.id, 10)).map(({ id }) => id));
    return Object.keys(ids).filter((name) => left.has(ids[name] ?? ""));
  };
  return { ...team, ids, grantId: grant?.id ?? "", token, link, remaining };
}

type Team = Awaited<ReturnType<typeof createWebhooks>>;

const ALL = ["byApp", "byOtherApp", "byOwner", "own"];
const WITHOUT_APP = ["byOtherApp", "byOwner", "own"];
const inOrganization = ({ base, grantId }: Team) => `${base}/apps/${grantId}`;
const inAccount = ({ grantId }: Team) => `/dashboard/account/apps/${grantId}`;

async function isRevoked(t: ExecutionContext, team: Team, expected: string[]) {
  t.false(await isAcceptedByApi(service, team.token));
  t.deepEqual(await team.remaining(), expected);
  t.truthy(await service.storage.links.find(team.organization.id, team.link.id));
}

for (const [where, pathOf] of Object.entries({ organization: inOrganization, account: inAccount })) {
  test(`in the ${where}, a page shows what revoking an app does, and deletes its webhooks if asked to`, async (t) => {
    const team = await createWebhooks();
    const path = pathOf(team);
    const { browser } = await browserOf(service, team.admin);
    const page = await browser.open(`${service.url}${path}/delete`);
    const text = page.html.querySelector("main")?.text ?? "";
    t.regex(text, /Reports.*1 webhook for you.*example\.com/s);
    t.regex(text, /Also delete all webhooks that this app created for you \(1 now\)/);
    t.true(await isAcceptedByApi(service, team.token), "nothing has changed yet");
    await browser.press(page, "Revoke access", { delete_webhooks: "true" });
    await isRevoked(t, team, WITHOUT_APP);
    const [deleted, ...others] = await audit.list(team.organization.id, { types: ["webhook.deleted"] }, 10);
    t.like(deleted, { actor: team.admin.id, subject: team.ids.byApp });
    t.deepEqual(others, []);
  });

  test(`in the ${where}, revoking an app keeps its webhooks otherwise`, async (t) => {
    const team = await createWebhooks();
    const send = (json: object) => team.admin.api.send("DELETE", pathOf(team), { json });
    t.is((await send({ delete_webhooks: "true" })).status, 422);
    t.is((await send({ delete_webhooks: false })).status, 204);
    await isRevoked(t, team, ALL);
  });
}

test("removing a member, and leaving, show what is lost, and delete the webhooks that the member created, if asked to", async (t) => {
  for (const who of ["owner", "admin"] as const) {
    const team = await createWebhooks();
    const { base, admin } = team;
    const path = `${base}/members/${who === "admin" ? "me" : admin.id}/delete`;
    const { text } = (await openAs(service, team[who], path)).page.html;
    t.regex(text, /The 2 apps .*: Alerts, Reports\..*3 webhooks.*example\.com \(3\)/s);
    t.is((await team[who].api.send("POST", path, { json: CHECKED })).status, 204);
    await isRevoked(t, team, ["byOwner"]);
    isMissing(t, await admin.api.get(base));
  }
  const kept = await createWebhooks();
  t.is((await kept.admin.api.send("DELETE", `${kept.base}/members/me`)).status, 204);
  await isRevoked(t, kept, ALL);
});

const demote = ({ base, owner, admin }: Team) =>
  owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });

const POWERLESS: [who: string, prepare: (team: Team) => Promise<unknown>, path: (team: Team) => string][] = [
  ["a member who was an admin, and revokes the app in the organization", demote, inOrganization],
  ["a member who was an admin, and revokes the app in the account", demote, inAccount],
  ["a member who was an admin, and leaves", demote, ({ base }) => `${base}/members/me`],
  [
    "a user of a suspended organization",
    ({ organization }) => suspensions.suspend(organization.id, "Phishing", OPERATOR),
    inAccount,
  ],
  [
    "a user without the second factor that is required",
    ({ organization }) =>
      organizationSettings.change(organization.id, { requiresSecondFactor: true }, OPERATOR),
    inAccount,
  ],
];

for (const [who, prepare, pathOf] of POWERLESS)
  test(`the webhooks are neither shown to, nor deleted by, ${who}`, async (t) => {
    const team = await createWebhooks();
    const { browser } = await browserOf(service, team.admin);
    await prepare(team);
    const page = await browser.open(`${service.url}${pathOf(team)}/delete`);
    t.is(page.status, 200);
    t.is(page.html.querySelector("[name=delete_webhooks]"), null);
    t.notRegex(page.html.querySelector("main")?.text ?? "", /example\.com/);
    t.is((await team.admin.api.send("DELETE", pathOf(team), { json: CHECKED })).status, 204);
    await isRevoked(t, team, ALL);
  });
