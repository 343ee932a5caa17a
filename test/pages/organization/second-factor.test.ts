import test from "ava";
import { ROLES } from "../../../resources/access/scopes.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { browserOf, createColleague, createTeam, openAs } from "../../harness/clients/dashboard.ts";
import { secretOn } from "../../harness/clients/form-filling.ts";
import { alertOn, follow, textsOn } from "../../harness/clients/pages.ts";
import { addTotp, codeOf, logIn, proveFactor } from "../../harness/clients/second-factor.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

const service = await startTestService();

const codeOn = (page: Page) => codeOf(secretOn(page));

test("an owner requires a second factor, after signing in with one", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const path = `${base}/members/require-second-factor`;
  const json = { require_second_factor: true };
  const without = await owner.api.send("PUT", path, { json });
  isProblem(t, without, { status: 409, code: "second_factor_missing" });
  const guarded = await addTotp(service, owner);
  const before = await owner.api.send("PUT", path, { json });
  isProblem(t, before, { status: 403, code: "reauthentication_required" });
  const { login_token } = (await logIn(service, guarded)).body;
  const { body } = await proveFactor(service, login_token, { totp: guarded.code() });
  const api = apiAt(service.url, body.access_token);
  t.is((await api.send("PUT", path, { json })).status, 200);
  t.true((await service.storage.organizationSettings.find(organization.id))?.requiresSecondFactor);
  t.is((await api.send("GET", base)).status, 200, "the owner continues");
});

test("the settings page sends an owner without a second factor to set one up before requiring it", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const { browser, page } = await openAs(service, owner, `${base}/settings`);
  t.false(textsOn(page, "button").includes("Require two-factor authentication"));
  const csrf = page.html.querySelector("[name=csrf]")?.attributes.value ?? "";
  const refused = await browser.open(`${service.url}${base}/members/require-second-factor`, {
    method: "POST",
    body: new URLSearchParams({ csrf, require_second_factor: "true" }),
    headers: { origin: service.url },
  });
  t.is(refused.status, 409);
  t.regex(alertOn(refused), /Set up two-factor authentication for your own account/);

  const setup = await follow(browser, refused, "Set up two-factor authentication");
  const app = await browser.press(setup, "Set up authenticator app");
  const codes = await browser.press(app, "Confirm code", { code: codeOn(app) });
  const listed = textsOn(codes, ".codes li");
  t.is(listed.length, 10);
  t.is(codes.html.querySelector("[data-copy]")?.attributes["data-copy"], listed.join("\n"));
  const file = await browser.press(codes, "Download as text");
  t.is(file.text, `${listed.join("\n")}\n`);
  t.regex(file.headers.get("content-disposition") ?? "", /^attachment; filename="/);
  t.is((await browser.press(codes, "Download as text", { codes: "<script>" })).status, 422);
  const required = await browser.press(
    await follow(browser, codes, "Continue"),
    "Require two-factor authentication",
  );
  t.is(required.url, `${page.url}?done=second-factor-required`);
  t.true((await service.storage.organizationSettings.find(organization.id))?.requiresSecondFactor);
  await browser.press(required, "Stop requiring two-factor authentication");
  t.false((await service.storage.organizationSettings.find(organization.id))?.requiresSecondFactor);
});

test("the setup of a second factor leads only to pages of the dashboard", async (t) => {
  const { browser } = await browserOf(service, await createColleague(service, undefined));
  const return_to = "//evil.example";
  const query = new URLSearchParams({ return_to });
  const setup = await browser.open(`${service.url}/dashboard/account/second-factor?${query}`);
  const app = await browser.press(setup, "Set up authenticator app");
  const codes = await browser.press(app, "Confirm code", { code: codeOn(app), return_to });
  const hrefs = codes.html.querySelectorAll("main .panel a").map(({ attributes }) => attributes.href);
  t.deepEqual(hrefs, ["/dashboard"]);
});

test("owners and admins without a second factor can do nothing there until they set one up, members can", async (t) => {
  const { base, admin, member, organization } = await createTeam(service);
  const { browser } = await browserOf(service, admin);
  const { organizationSettings } = service.storage;
  await organizationSettings.change(organization.id, { requiresSecondFactor: true }, OPERATOR);
  t.is((await member.api.send("GET", base)).status, 200);

  const setup = await browser.open(`${service.url}${base}/links?tag=spring`);
  t.regex(setup.text, /requires owners and admins to use two-factor authentication/);
  const page = await browser.press(setup, "Set up authenticator app");
  const codes = await browser.press(page, "Confirm code", { code: codeOn(page) });
  const back = await follow(browser, codes, "Continue");
  t.is(back.url, `${service.url}${base}/links?tag=spring`, "it leads back to the page that was asked for");
  t.is(back.status, 200, "the app was just proved in this session");
  const old = await admin.api.send("GET", base);
  isProblem(t, old, { status: 403, code: "reauthentication_required" });

  const change = { organizationId: organization.id, userId: member.id, role: "admin" as const };
  await service.storage.members.changeRole({ ...change, manageableRoles: ROLES, actor: OPERATOR });
  const promoted = await member.api.send("GET", base);
  isProblem(t, promoted, { status: 403, code: "second_factor_setup_required" });
});

test("an owner without a second factor can't authorize an app for the organization", async (t) => {
  const { app, own } = await createApp(service);
  const owner = await createColleague(service, own.id, "owner");
  await service.storage.organizationSettings.change(own.id, { requiresSecondFactor: true }, OPERATOR);
  const browser = new TestBrowser(service.url);
  const refused = await browser.signIn(await browser.open(authorizeUrl(service, app)), owner);
  t.regex(refused.text, /requires two-factor authentication/);
  t.false(refused.html.querySelectorAll("button").some(({ text }) => text === "Allow"));

  const guarded = await addTotp(service, owner);
  const other = new TestBrowser(service.url);
  const asked = await other.signIn(await other.open(authorizeUrl(service, app)), owner);
  const consent = await other.press(asked, "Continue", { totp: guarded.code() });
  const { searchParams } = new URL((await other.press(consent, "Allow")).url);
  t.truthy(searchParams.get("code"));
});

test("the operator removes all second factors, which ends the sessions and leaves a notice", async (t) => {
  const own = await service.createOrganization();
  const user = await addTotp(service, await createColleague(service, own.id));
  const { login_token } = (await logIn(service, user)).body;
  const { body } = await proveFactor(service, login_token, { totp: user.code() });
  await service.storage.secondFactors.reset(user.id, OPERATOR);
  t.is((await apiAt(service.url, body.access_token).send("GET", "/dashboard/me")).status, 401);
  t.is((await logIn(service, user)).status, 200);
  const [entry] = await service.storage.audit.list(own.id, { types: ["member.second_factors_reset"] }, 1);
  t.like(entry, { actor: "operator", subject: user.id });
  const notices = await service.storage.notices.list(user.id);
  t.true(notices.some(({ kind, data }) => kind === "second_factor_removed" && data.by === "operator"));
});
