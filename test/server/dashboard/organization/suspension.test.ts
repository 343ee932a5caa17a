import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createColleague, createTeam } from "../../../harness/clients/dashboard.ts";
import { authorizeUrl, createApp, openConsent } from "../../../harness/clients/oauth.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService({ SUPPORT_CONTACT: "mailto:support@links.example" });
const { suspensions, clients, disabledAccounts } = service.storage;
test.after.always(() => service.close());

test("a suspended organization can be viewed, but not changed", async (t) => {
  const { organization, base, owner, member } = await createTeam(service);
  const invited = await owner.api.send<{ url: string }>("POST", `${base}/invitations`, { json: {} });
  await suspensions.suspend(organization.id, "Phishing", OPERATOR);
  const changes: [method: string, path: string, json?: object][] = [
    ["PATCH", "", { name: "New" }],
    ["DELETE", ""],
    ["PUT", "/fallback-url", { fallback_url: null }],
    ["POST", "/links", { url: "https://example.com/" }],
    ["PUT", "/plan", { plan: "premium" }],
    ["POST", "/client/rotate", {}],
    ["POST", "/client/disable", {}],
    ["PUT", "/client/redirect-uris", { redirect_uris: [] }],
    ["POST", "/webhooks", { url: "https://example.com/", events: ["link.created"] }],
    ["POST", "/invitations", {}],
    ["PATCH", `/members/${member.id}`, { role: "admin" }],
    ["DELETE", `/members/${member.id}`],
  ];
  const refused = { status: 403, code: "organization_suspended" };
  for (const [method, path, json] of changes) {
    isProblem(t, await owner.api.send(method, base + path, json && { json }), refused);
  }
  for (const path of [
    "",
    "/links",
    "/members",
    "/apps",
    "/client",
    "/webhooks",
    "/audit",
    "/plan",
    "/settings",
  ]) {
    t.is((await owner.api.get(base + path)).status, 200, path);
  }
  const guest = await createColleague(service, undefined);
  const { pathname } = new URL(invited.body.url);
  t.is((await guest.api.send("POST", pathname)).status, 403);
  const me = await owner.api.get<{ organizations: { suspended?: { reason: string } }[] }>("/dashboard/me");
  t.is(me.body.organizations[0]?.suspended?.reason, "Phishing");
  const { page } = await browserOf(service, owner);
  const banner = page.html.querySelector(".alert.bad");
  t.regex(banner?.text ?? "", /This organization is suspended.*Reason: Phishing/s);
  t.is(banner?.querySelector("a")?.attributes.href, "mailto:support@links.example");
});

test("an app can't be authorized for a suspended organization", async (t) => {
  const { app, own, user } = await createApp(service);
  await suspensions.suspend(own.id, null, OPERATOR);
  const page = await openConsent(new TestBrowser(service.url), user, authorizeUrl(service, app));
  t.regex(page.text, /Your organization is suspended/);
  t.false(page.html.querySelectorAll("button").some((button) => button.text.trim() === "Allow"));
});

test("an owner disables and enables the client, unless the operator disabled it", async (t) => {
  const { organization, base, owner, admin } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const form = await browser.open(`${service.url}${base}/client/disable`);
  const disabled = await browser.press(form, "Disable client", { reason: "A key leaked" });
  t.regex(disabled.text, /Client disabled\./);
  t.regex(
    disabled.html.querySelector(".alert.bad")?.text ?? "",
    /An owner disabled this client.*A key leaked/s,
  );
  t.falsy((await browserOf(service, admin)).page.html.querySelector(`[action$="/client/enable"]`));
  t.regex((await browser.press(disabled, "Enable client")).text, /Client enabled\./);
  t.is((await clients.findByOrganization(organization.id))?.disabled, null);
  await owner.api.send("POST", `${base}/client/disable`, { json: {} });
  await clients.disable(organization.id, null, OPERATOR);
  t.is((await owner.api.send("POST", `${base}/client/disable`, { json: { reason: "Mine" } })).status, 200);
  isProblem(t, await owner.api.send("POST", `${base}/client/enable`), {
    status: 403,
    code: "disabled_by_operator",
  });
});

test("an owner signs a member out of everything only if no other organization is affected", async (t) => {
  const { base, organization, owner, member, admin } = await createTeam(service);
  const signOut = (id: string) =>
    owner.api.send<{ sessions_ended: boolean }>("POST", `${base}/members/${id}/sign-out`);
  const other = await service.createOrganization();
  await service.storage.organizations.addMember(other.id, admin.id, "member", OPERATOR);
  const { browser } = await browserOf(service, member);
  t.deepEqual((await signOut(member.id)).body, { sessions_ended: true });
  t.is((await member.api.get("/dashboard/me")).status, 401);
  t.regex((await browser.open(`${service.url}${base}`)).url, /\/auth\/login/);
  t.deepEqual((await signOut(admin.id)).body, { sessions_ended: false });
  t.is((await admin.api.get("/dashboard/me")).status, 200);
  isProblem(t, await admin.api.send("POST", `${base}/members/${member.id}/sign-out`), {
    status: 403,
    code: "role_required",
  });
  t.is(
    await disabledAccounts.signOutMember({ organizationId: organization.id, userId: "usr_x" }, OPERATOR),
    undefined,
  );
});

test.serial("signing out someone who isn't a member locks and changes nothing", async (t) => {
  const { base, owner, stranger } = await createTeam(service);
  const statements: { sql: string; transaction: string | undefined }[] = [];
  const stop = service.onStatement((sql, transaction) => statements.push({ sql, transaction }));
  const reply = await owner.api.send("POST", `${base}/members/${stranger.id}/sign-out`);
  stop();
  isProblem(t, reply, { status: 404, code: "not_found" });
  const ofUsers = statements.filter(({ sql }) => /[`"](users|organizations|memberships)[`"]/.test(sql));
  t.true(ofUsers.length > 0);
  t.deepEqual(
    ofUsers.filter(({ sql, transaction }) => transaction || !sql.startsWith("select")),
    [],
  );
});
