import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { browserOf, type Colleague, createTeam } from "../../harness/clients/dashboard.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { isAcceptedByApi } from "../../harness/clients/oauth.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, uniqueUrl, type WebhookPage } from "../../harness/webhooks.ts";

const service = await startTestService();
const app = await service.createOrganization("Reports");
const otherApp = await service.createOrganization("Other app");
test.after.always(() => service.close());

const SCOPE = "links:write webhooks:write";
const CHECKED = { delete_webhooks: true };

/**
 * Creates a team whose admin has webhooks: created with an app, with another app, and in the dashboard. The owner has one
 * that was created with the same app.
 */
async function createWebhooks() {
  const team = await createTeam(service);
  const { organization, base, owner, admin } = team;
  const through = async (client: typeof app, user: Colleague) => {
    const tokens = await tokensFor(service, client, user, {
      organizationId: organization.id,
      parameters: { scope: SCOPE },
    });
    const api = apiAt(service.url, tokens.access_token);
    const { id } = await createWebhook(api, uniqueUrl());
    return { api, id, token: tokens.access_token };
  };
  const [byApp, byOtherApp, byOwner] = [
    await through(app, admin),
    await through(otherApp, admin),
    await through(app, owner),
  ];
  const link = await byApp.api.createLink();
  const json = { url: uniqueUrl(), events: ["link.created"] };
  const { body } = await admin.api.send<{ id: string }>("POST", `${base}/webhooks`, { json });
  const webhooks = { byApp: byApp.id, byOtherApp: byOtherApp.id, byOwner: byOwner.id, own: body.id };
  const grants = (await service.storage.grants.listByOrganization(organization.id)).filter(
    ({ userId, clientId }) => userId === admin.id && clientId === app.clientId,
  );
  const remaining = async () => {
    const { data } = (await owner.api.get<WebhookPage>(`${base}/webhooks`)).body;
    const ids = new Set(data.map(({ id }) => id));
    return Object.entries(webhooks).flatMap(([name, id]) => (ids.has(id) ? [name] : []));
  };
  return { ...team, webhooks, grantId: grants[0]?.id as string, token: byApp.token, link, remaining };
}

const ALL = ["byApp", "byOtherApp", "byOwner", "own"];
const WITHOUT_APP = ["byOtherApp", "byOwner", "own"];

/** Checks that the app has lost access, which webhooks remain, and that the link does. */
async function isRevoked(
  t: ExecutionContext,
  { token, remaining, owner, base, link }: Awaited<ReturnType<typeof createWebhooks>>,
  expected: string[],
) {
  t.false(await isAcceptedByApi(service, token));
  t.deepEqual(await remaining(), expected);
  t.is((await owner.api.get(`${base}/links/${link.id}`)).status, 200);
}

const ROUTES = {
  organization: ({ base }: { base: string }) => `${base}/apps`,
  account: () => "/dashboard/account/apps",
};

for (const [where, pathOf] of Object.entries(ROUTES)) {
  test(`in the ${where}, revoking an app deletes the webhooks that it created for the user, if asked to`, async (t) => {
    const team = await createWebhooks();
    const { organization, admin, grantId, webhooks } = team;
    const path = `${pathOf(team)}/${grantId}/delete`;
    t.is((await admin.api.send("POST", path, { json: CHECKED })).status, 204);
    await isRevoked(t, team, WITHOUT_APP);
    const deleted = await service.storage.audit.list(organization.id, { types: ["webhook.deleted"] }, 10);
    t.deepEqual(
      deleted.map(({ actor, subject }) => [actor, subject]),
      [[admin.id, webhooks.byApp]],
    );
    isMissing(t, await admin.api.send("POST", path, { json: CHECKED }));
    t.deepEqual(await team.remaining(), WITHOUT_APP);
  });

  test(`in the ${where}, revoking an app keeps its webhooks otherwise`, async (t) => {
    for (const json of [undefined, {}, { delete_webhooks: false }]) {
      const team = await createWebhooks();
      const path = `${pathOf(team)}/${team.grantId}`;
      t.is((await team.admin.api.send("DELETE", path, json && { json })).status, 204);
      await isRevoked(t, team, ALL);
    }
  });

  test(`in the ${where}, an invalid choice changes nothing`, async (t) => {
    const team = await createWebhooks();
    const path = `${pathOf(team)}/${team.grantId}/delete`;
    for (const [json, code, field] of [
      [{ delete_webhooks: "true" }, "invalid_delete_webhooks", "delete_webhooks"],
      [{ delete_webhook: true }, "unknown_field", "delete_webhook"],
    ] as const) {
      isProblem(t, await team.admin.api.send("POST", path, { json }), { status: 422, code, fields: [field] });
    }
    t.true(await isAcceptedByApi(service, team.token));
    t.deepEqual(await team.remaining(), ALL);
  });

  test(`in the ${where}, a role that can't manage webhooks can't delete them by revoking an app`, async (t) => {
    const team = await createWebhooks();
    const { base, owner, admin, grantId } = team;
    await owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });
    const { browser } = await browserOf(service, admin);
    const page = await browser.open(`${service.url}${pathOf(team)}/${grantId}/delete`);
    t.is(page.status, 200);
    t.is(page.html.querySelector("[name=delete_webhooks]"), null);
    t.notRegex(page.html.querySelector("main")?.text ?? "", /example\.com/, "members don't see webhooks");
    const done = await browser.press(page, "Revoke access", { delete_webhooks: "true" });
    t.regex(done.text, /Access revoked\./);
    await isRevoked(t, team, ALL);
  });

  test(`in the ${where}, a page shows what revoking an app does`, async (t) => {
    for (const isChecked of [false, true]) {
      const team = await createWebhooks();
      const { browser } = await browserOf(service, team.admin);
      const list = await browser.open(service.url + pathOf(team));
      const link = list.html.querySelector(`main a[href$="/${team.grantId}/delete"]`);
      const page = await browser.open(service.url + link?.attributes.href);
      const text = page.html.querySelector("main")?.text ?? "";
      t.regex(text, /Reports.*1 webhook for you.*example\.com/s);
      t.regex(text, /Also delete all webhooks that this app created for you \(1 now\)/);
      t.true(await isAcceptedByApi(service, team.token), "nothing has changed yet");
      const cancel = page.html.querySelectorAll("main a").find((one) => one.text === "Cancel");
      t.is(cancel?.attributes.href, pathOf(team));
      const done = await browser.press(page, "Revoke access", isChecked ? { delete_webhooks: "true" } : {});
      t.regex(done.text, isChecked ? /Access revoked, and webhooks deleted\./ : /Access revoked\./);
      await isRevoked(t, team, isChecked ? WITHOUT_APP : ALL);
    }
  });
}

test("removing a member deletes the webhooks that the member created, if asked to", async (t) => {
  for (const [json, expected] of [
    [undefined, ALL],
    [CHECKED, ["byOwner"]],
  ] as const) {
    const team = await createWebhooks();
    const path = `${team.base}/members/${team.admin.id}/delete`;
    t.is((await team.owner.api.send("POST", path, json && { json })).status, 204);
    await isRevoked(t, team, [...expected]);
    isMissing(t, await team.admin.api.get(team.base));
  }
});

test("leaving deletes the webhooks that the member created, if asked to", async (t) => {
  for (const [json, expected] of [
    [undefined, ALL],
    [CHECKED, ["byOwner"]],
  ] as const) {
    const team = await createWebhooks();
    t.is((await team.admin.api.send("POST", `${team.base}/members/me/delete`, json && { json })).status, 204);
    await isRevoked(t, team, [...expected]);
  }
});

test("a member who lost the role to manage webhooks can't delete them by leaving", async (t) => {
  const team = await createWebhooks();
  const { base, owner, admin } = team;
  await owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });
  const reply = await admin.api.send("DELETE", `${base}/members/me`, { json: CHECKED });
  t.is(reply.status, 204);
  await isRevoked(t, team, ALL);
});

test("a refused removal deletes no webhooks", async (t) => {
  const { base, owner, admin, remaining } = await createWebhooks();
  for (const [{ api }, id, code] of [
    [admin, owner.id, "role_required"],
    [owner, "me", "last_owner"],
  ] as const) {
    const reply = await api.send("POST", `${base}/members/${id}/delete`, { json: CHECKED });
    t.is(reply.body.code, code);
  }
  t.deepEqual(await remaining(), ALL);
});

test("pages show what removing a member and leaving do", async (t) => {
  const team = await createWebhooks();
  const { base, owner, admin } = team;
  const { browser } = await browserOf(service, owner);
  const members = await browser.open(`${service.url}${base}/members`);
  const href = `${base}/members/${admin.id}/delete`;
  t.truthy(members.html.querySelector(`main a[href="${href}"]`));
  const page = await browser.open(service.url + href);
  t.regex(page.html.querySelector("main")?.text ?? "", /Other app.*Reports.*3 webhooks.*example\.com \(3\)/s);
  t.is(page.html.querySelector("[name=delete_webhooks]")?.attributes.checked, undefined);

  const { browser: leaving } = await browserOf(service, admin);
  const settings = await leaving.open(`${service.url}${base}/settings`);
  const leave = settings.html.querySelector(`main a[href="${base}/members/me/delete"]`);
  const own = await leaving.open(service.url + leave?.attributes.href);
  t.regex(own.html.querySelector("main")?.text ?? "", /3 webhooks/);

  const removed = await browser.press(page, "Remove member", { delete_webhooks: "true" });
  t.regex(removed.text, /Member removed, and webhooks deleted\./);
  t.deepEqual(await team.remaining(), ["byOwner"]);
});

test("the only owner reads why leaving is impossible", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(`${service.url}${base}/members/me/delete`);
  t.is(page.status, 200);
  t.regex(page.text, /must have an owner/);
  t.is(page.html.querySelector("main form"), null);
});

test("an app of a suspended organization can be revoked in the account, but its webhooks stay", async (t) => {
  const team = await createWebhooks();
  await service.storage.suspensions.suspend(team.organization.id, "Phishing", OPERATOR);
  const { browser } = await browserOf(service, team.admin);
  const page = await browser.open(`${service.url}/dashboard/account/apps/${team.grantId}/delete`);
  t.is(page.html.querySelector("[name=delete_webhooks]"), null);
  await browser.press(page, "Revoke access", { delete_webhooks: "true" });
  t.deepEqual(await team.remaining(), ALL);
});

test("where a second factor is required, users without one can't delete webhooks by revoking an app", async (t) => {
  const team = await createWebhooks();
  const { organizationSettings } = service.storage;
  await organizationSettings.change(team.organization.id, { requiresSecondFactor: true }, OPERATOR);
  const path = `/dashboard/account/apps/${team.grantId}`;
  t.is((await team.admin.api.send("DELETE", path, { json: CHECKED })).status, 204);
  await organizationSettings.change(team.organization.id, { requiresSecondFactor: false }, OPERATOR);
  await isRevoked(t, team, ALL);
});
