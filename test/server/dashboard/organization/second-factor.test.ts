import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createColleague, createTeam } from "../../../harness/clients/dashboard.ts";
import { authorizeUrl, createApp } from "../../../harness/clients/oauth.ts";
import { addTotp, codeOf, logIn, proveFactor } from "../../../harness/clients/second-factor.ts";
import { type Page, TestBrowser } from "../../../harness/clients/test-browser.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const REQUIRED = { require_second_factor: true };

test("an owner requires a second factor, after signing in with one", async (t) => {
  const { base, owner, admin, organization } = await createTeam(service);
  const path = `${base}/members/require-second-factor`;
  isProblem(t, await admin.api.send("PUT", path, { json: REQUIRED }), { status: 403, code: "role_required" });
  const without = await owner.api.send("PUT", path, { json: REQUIRED });
  isProblem(t, without, { status: 409, code: "second_factor_missing" });

  const guarded = await addTotp(service, owner);
  const before = await owner.api.send("PUT", path, { json: REQUIRED });
  isProblem(t, before, { status: 403, code: "reauthentication_required" });
  const { login_token } = (await logIn(service, guarded)).body;
  const { body } = await proveFactor(service, login_token, { totp: guarded.code() });
  const api = apiAt(service.url, body.access_token);
  t.is((await api.send("PUT", path, { json: REQUIRED })).status, 200);
  t.true((await service.storage.organizationSettings.find(organization.id))?.requiresSecondFactor);
  t.is((await api.send("GET", base)).status, 200, "the owner continues");
  const recorded = await service.storage.audit.list(
    organization.id,
    { types: ["organization.second_factor_required"] },
    10,
  );
  t.is(recorded.length, 1);
  t.like(recorded[0], { actor: owner.id, data: { required: true } });
});

test("the settings page sends an owner without a second factor to set one up before requiring it", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const settings = `${service.url}${base}/settings`;
  const page = await browser.open(settings);
  const setupLink = ({ html }: Page) =>
    html.querySelectorAll("main a").find(({ text }) => text === "Set up a second factor")?.attributes.href ??
    "";
  t.false(page.html.querySelectorAll("button").some(({ text }) => text === "Require a second factor"));
  const csrf = page.html.querySelector("[name=csrf]")?.attributes.value ?? "";
  const refused = await browser.open(`${service.url}${base}/members/require-second-factor`, {
    method: "POST",
    body: new URLSearchParams({ csrf, require_second_factor: "true" }),
    headers: { origin: service.url },
  });
  t.is(refused.status, 409);
  t.regex(
    refused.html.querySelector("[role=alert]")?.text ?? "",
    /Set up a second factor for your own account/,
  );

  const setup = await browser.open(new URL(setupLink(refused), service.url).href);
  const app = await browser.press(setup, "Set up authenticator app");
  const secret = app.html.querySelector(".copyable code")?.text.replaceAll(" ", "") ?? "";
  const mistyped = await browser.press(app, "Confirm code", { code: "000000x" });
  t.is(mistyped.status, 422);
  const codes = await browser.press(mistyped, "Confirm code", { code: codeOf(secret) });
  const listed = codes.html.querySelectorAll(".codes li").map(({ text }) => text);
  t.is(listed.length, 10);
  t.is(codes.html.querySelector("[data-copy]")?.attributes["data-copy"], listed.join("\n"));
  const file = await browser.press(codes, "Download as text");
  t.is(file.text, `${listed.join("\n")}\n`);
  t.is(file.headers.get("content-disposition"), 'attachment; filename="linkgate-recovery-codes.txt"');
  t.is((await browser.press(codes, "Download as text", { codes: "<script>" })).status, 422);
  const section = codes.html.querySelectorAll("main a").find(({ text }) => text === "Continue");
  t.regex(section?.attributes.href ?? "", /\/settings#second-factor$/);
  const required = await browser.press(await follow(browser, codes, "Continue"), "Require a second factor");
  t.is(required.html.querySelector("[role=status]")?.text, "Owners and admins now need a second factor.");
  t.is(required.url, `${settings}?done=second-factor-required`);
  t.true((await service.storage.organizationSettings.find(organization.id))?.requiresSecondFactor);
  const optional = await browser.press(required, "Stop requiring a second factor");
  t.is(optional.html.querySelector("[role=status]")?.text, "A second factor is no longer required.");
});

/** Follows the link with this text in the content of a page. */
function follow(browser: TestBrowser, { html }: Page, text: string): Promise<Page> {
  const link = html.querySelectorAll("main a").find((one) => one.text === text);
  return browser.open(new URL(link?.attributes.href ?? "", service.url).href);
}

for (const returnTo of ["//evil.example", "https://evil.example/", "/\\evil.example", "/promo"]) {
  test(`the setup of a second factor doesn't lead to ${returnTo}`, async (t) => {
    const { browser } = await browserOf(service, await createColleague(service, undefined));
    const query = new URLSearchParams({ return_to: returnTo });
    const setup = await browser.open(`${service.url}/dashboard/account/second-factor?${query}`);
    const app = await browser.press(setup, "Set up authenticator app");
    const secret = app.html.querySelector(".copyable code")?.text.replaceAll(" ", "") ?? "";
    const fields = { code: codeOf(secret), return_to: returnTo };
    const codes = await browser.press(app, "Confirm code", fields);
    const hrefs = codes.html.querySelectorAll("main .panel a").map(({ attributes }) => attributes.href);
    t.deepEqual(hrefs, ["/dashboard"]);
  });
}

test("a second factor that is set up from the account leads back to it", async (t) => {
  const { browser, page } = await browserOf(service, await createColleague(service, undefined));
  const account = await browser.open(new URL("/dashboard/account", page.url).href);
  const app = await browser.press(account, "Set up authenticator app");
  const secret = app.html.querySelector(".copyable code")?.text.replaceAll(" ", "") ?? "";
  const codes = await browser.press(app, "Confirm code", { code: codeOf(secret) });
  t.is((await follow(browser, codes, "Done")).url, account.url);
  const again = await browser.press(app, "Confirm code", { code: codeOf(secret) });
  t.is(again.url, account.url, "also if the form is sent twice");
});

test("owners and admins without a second factor can do nothing there until they set one up, members can", async (t) => {
  const { base, admin, member, organization } = await createTeam(service);
  const { browser } = await browserOf(service, admin);
  await service.storage.organizationSettings.change(
    organization.id,
    { requiresSecondFactor: true },
    OPERATOR,
  );
  t.is((await member.api.send("GET", base)).status, 200);
  for (const [method, path] of [
    ["GET", ""],
    ["GET", "/audit"],
    ["POST", "/links"],
    ["POST", "/invitations"],
  ] as const) {
    const refused = await admin.api.send(method, base + path, method === "POST" ? { json: {} } : {});
    isProblem(t, refused, { status: 403, code: "second_factor_setup_required" });
  }

  const setup = await browser.open(`${service.url}${base}/links?tag=spring`);
  t.regex(setup.text, /requires owners and admins to sign in with a second factor/);
  const page = await browser.press(setup, "Set up authenticator app");
  const secret = page.html.querySelector(".copyable code")?.text.replaceAll(" ", "") ?? "";
  const codes = await browser.press(page, "Confirm code", { code: codeOf(secret) });
  const back = await follow(browser, codes, "Continue");
  t.is(back.url, `${service.url}${base}/links?tag=spring`, "it leads back to the page that was asked for");
  t.is(back.status, 200, "the app was just proved in this session");
  const old = await admin.api.send("GET", base);
  isProblem(t, old, { status: 403, code: "reauthentication_required" });

  await service.storage.members.changeRole({
    organizationId: organization.id,
    userId: member.id,
    role: "admin",
    manageableRoles: ["owner", "admin", "member"],
    actor: OPERATOR,
  });
  const promoted = await member.api.send("GET", base);
  isProblem(t, promoted, { status: 403, code: "second_factor_setup_required" });
});

test("an owner without a second factor can't authorize an app for the organization", async (t) => {
  const { app, own } = await createApp(service);
  const owner = await createColleague(service, own.id, "owner");
  await service.storage.organizationSettings.change(own.id, { requiresSecondFactor: true }, OPERATOR);
  const browser = new TestBrowser(service.url);
  const refused = await browser.signIn(await browser.open(authorizeUrl(service, app)), owner);
  t.regex(refused.text, /requires a second factor/);
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
