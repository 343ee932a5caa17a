import test from "ava";
import { decodeJwt } from "jose";
import { apiAt } from "../../harness/clients/api.ts";
import { allow, openConsent, runCodeFlow, sendForm } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { isAcceptedByApi, postAsClient, redeemCode, refresh } from "../../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { cookieOf } from "../../harness/clients/visits.ts";
import { startWithStorage } from "../../harness/database/service-storage.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { rounds } from "../../harness/rounds.ts";
import { postForm, type TestUser } from "../../harness/service.ts";

export const databases = "all";

const { service, knex } = await startWithStorage();
const { app, own, user } = await createApp(service);

test.serial("a pending authorization is stored without its own id and that of the session", async (t) => {
  const { browser, page } = await openConsentPage();
  const [, id = ""] = /\/interaction\/([A-Za-z0-9_-]+)/.exec(page.url) ?? [];
  const session = await cookieOf(service, browser, "session");
  const rows = JSON.stringify(await knex("interactions").select());
  t.true(rows.length > 100);
  for (const secret of [id, session?.value ?? ""]) {
    t.true(secret.length >= 20);
    t.false(rows.includes(secret));
  }
});

const ALLOW = { decision: "allow", organization_id: own.id };
const CANCEL = { decision: "cancel" };
const activeGrants = ({ id }: TestUser) => service.storage.grants.listByUser(id);

async function openConsentPage(signingIn = user) {
  const browser = new TestBrowser(service.url);
  return { browser, page: await openConsent(browser, signingIn, authorizeUrl(service, app)) };
}

async function followRedirect(browser: TestBrowser, answer: Response): Promise<URLSearchParams> {
  const { url: end } = await browser.open(new URL(String(answer.headers.get("location")), service.url).href);
  return new URL(end).searchParams;
}

const canStillAllow = async (browser: TestBrowser, page: Page) =>
  new URL((await browser.press(page, "Allow")).url).searchParams.has("code");

const csrfOn = ({ html }: Page) => html.querySelector("[name=csrf]")?.attributes.value ?? "";

test("a consent without the CSRF token of its own authorization is rejected and changes nothing", async (t) => {
  const [{ browser, page }, other] = [await openConsentPage(), await openConsentPage()];
  for (const csrf of [undefined, "", "x".repeat(43), "AAAA", csrfOn(other.page)]) {
    const { status, headers } = await sendForm(browser, page, { ...ALLOW, csrf });
    t.is(status, 400, csrf);
    t.is(headers.get("location"), null);
  }
  t.true(await canStillAllow(browser, page));
});

test("a sign-in without a CSRF token is rejected even with the correct password", async (t) => {
  const browser = new TestBrowser(service.url);
  const page = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
  const { username, password } = user;
  t.is((await sendForm(browser, page, { username, password, csrf: undefined })).status, 400);
  t.truthy((await browser.open(page.url)).html.querySelector("#password"));
});

test("a consent from another site is rejected even with the CSRF token", async (t) => {
  const { browser, page } = await openConsentPage();
  const action = `${page.url}/consent`;
  const cookie = await browser.jar.getCookieString(action);
  for (const headers of [{ "sec-fetch-site": "same-site" }, { origin: "https://evil.example" }]) {
    const answer = await postForm(action, { ...ALLOW, csrf: csrfOn(page) }, { cookie, ...headers });
    t.is(answer.status, 403);
    t.regex(await answer.text(), /This request came from another site/);
  }
  t.true(await canStillAllow(browser, page));
});

test("another browser can neither open nor approve an authorization", async (t) => {
  const { browser, page } = await openConsentPage();
  const stranger = new TestBrowser(service.url);
  const ownConsent = await openConsent(stranger, user, authorizeUrl(service, app));
  for (const other of [new TestBrowser(service.url), stranger]) {
    t.is((await other.open(page.url)).status, 400);
    const { status, headers } = await sendForm(other, page, ALLOW);
    t.is(status, 400);
    t.is(headers.get("location"), null);
  }
  t.true(await canStillAllow(stranger, ownConsent));
  t.true(await canStillAllow(browser, page));
});

/** Approves in a browser that doesn't follow the redirect; returns the URL that resumes the authorization. */
async function approved() {
  const { browser, page } = await openConsentPage();
  const resume = String((await sendForm(browser, page, ALLOW)).headers.get("location"));
  return { browser, page, resume, cookie: await browser.jar.getCookieString(resume) };
}

test("an approved authorization is resumed once, and only by its own browser", async (t) => {
  const { browser, page, resume, cookie } = await approved();
  t.regex(resume, /\/oauth\/authorize\/[\w-]+$/);
  for (const other of [new TestBrowser(service.url), (await openConsentPage()).browser]) {
    const answer = await other.open(resume);
    t.is(answer.status, 400);
    t.false(answer.url.includes("code="));
  }
  t.true((await browser.open(resume)).url.includes("code="));
  t.is((await fetch(resume, { headers: { cookie }, redirect: "manual" })).status, 400);
  t.is((await browser.open(page.url)).status, 400);
  t.is((await sendForm(browser, page, ALLOW)).status, 400);
});

test("a modified interaction cookie is rejected", async (t) => {
  const { browser, page } = await openConsentPage();
  const cookie = await browser.jar.getCookieString(page.url);
  for (const changed of [
    cookie.replace(/interaction\.sig=[^;]+/, "interaction.sig=AAAA"),
    cookie.replace(/interaction\.sig=[^;]+;? ?/, ""),
    cookie.replace(/interaction=[^;]+/, "interaction=AAAA"),
  ]) {
    t.not(changed, cookie);
    t.is((await fetch(page.url, { headers: { cookie: changed } })).status, 400);
  }
});

test("concurrent approvals of one consent page create one grant and one code", async (t) => {
  for (let round = 0; round < rounds(2, 20); round++) {
    const approver = await service.createUser([own.id], undefined, "owner");
    const { browser, page } = await openConsentPage(approver);
    const answers = await atOnce(30, () => sendForm(browser, page, ALLOW));
    t.is((await activeGrants(approver)).length, 1, `round ${round}`);
    t.deepEqual([...new Set(answers.map(({ status }) => status))], [303], "each redirects like the first");
    const ends = [];
    for (const answer of answers) ends.push(await followRedirect(browser, answer));
    t.is(ends.filter((end) => end.has("code")).length, 1);
  }
});

test("only the first decision counts, and following the second response leads to its result", async (t) => {
  for (const [first, then, expected] of [
    [ALLOW, ALLOW, "code"],
    [ALLOW, CANCEL, "code"],
    [CANCEL, ALLOW, "error"],
  ] as const) {
    const approver = await service.createUser([own.id], undefined, "owner");
    const { browser, page } = await openConsentPage(approver);
    await sendForm(browser, page, first); // the browser drops this response
    const end = await followRedirect(browser, await sendForm(browser, page, then));
    t.true(end.has(expected), expected);
    t.is((await activeGrants(approver)).length, expected === "code" ? 1 : 0, expected);
  }
});

test("consent can't be submitted before signing in", async (t) => {
  const browser = new TestBrowser(service.url);
  const page = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
  const form = page.html.querySelector("form");
  form?.setAttribute("action", String(form.attributes.action).replace("sign-in", "consent"));
  t.is((await sendForm(browser, page, ALLOW)).status, 400);
});

test("any decision other than allow denies access", async (t) => {
  for (const decision of ["cancel", "", "ALLOW", "yes", undefined]) {
    const { browser, page } = await openConsentPage();
    const { headers } = await sendForm(browser, page, { ...ALLOW, decision });
    const end = await browser.open(String(headers.get("location")));
    t.is(new URL(end.url).searchParams.get("error"), "access_denied", String(decision));
    const again = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
    t.true(await canStillAllow(browser, again), "another authorization can be started");
  }
});

const organizationOf = async (token: unknown) =>
  (await apiAt(service.url, String(token)).get<{ id: string }>("/v1/organization")).body.id;

/** Creates a member of two organizations, neither of which is the client's. */
async function createMember() {
  const second = await service.createOrganization();
  return { second, member: await service.createUser([own.id, second.id]) };
}

test("a member of two organizations selects one for each authorization, and revoking it keeps the others", async (t) => {
  const { second, member } = await createMember();
  const browser = new TestBrowser(service.url);
  const { html } = await openConsent(browser, member, authorizeUrl(service, app));
  const radios = html.querySelectorAll("[type=radio]").map(({ attributes }) => attributes);
  const offered = radios.map(({ value, checked }) => `${value} ${checked !== undefined}`);
  t.deepEqual(offered, [`${own.id} true`, `${second.id} false`]);
  const authorized = [];
  for (const { id } of [second, own, second])
    authorized.push({ id, ...(await runCodeFlow(service, app, member, { browser, organizationId: id })) });
  const [{ refreshToken: revoked = "", accessToken = "" } = {}, ...others] = authorized;
  t.is((await postAsClient(service, "revoke", app, { token: revoked })).status, 200);
  t.false(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, app, revoked)).status, 400);
  for (const { id, accessToken, refreshToken } of others) {
    t.is(await organizationOf(accessToken), id);
    t.is(await organizationOf((await refresh(service, app, refreshToken)).body.access_token), id);
  }
});

test("only the user's own paid organizations can be selected", async (t) => {
  const free = await service.createOrganization("Free", "free");
  const foreign = await service.createOrganization();
  const member = await service.createUser([own.id, free.id]);
  const browser = new TestBrowser(service.url);
  for (const organization_id of [free.id, foreign.id, app.id, "org_nothing", "", undefined]) {
    const page = await openConsent(browser, member, authorizeUrl(service, app));
    const answer = await sendForm(browser, page, { decision: "allow", organization_id });
    t.is(answer.status, 422, String(organization_id));
    t.is(answer.headers.get("location"), null);
  }
});

test("a user with no organization, or only with one on the Free plan, sees no Allow button and can't approve", async (t) => {
  const free = await service.createOrganization("Free", "free");
  for (const ids of [[], [free.id]]) {
    const { browser, page } = await openConsentPage(await service.createUser(ids));
    const buttons = page.html.querySelectorAll("button").map(({ text }) => text.trim());
    t.deepEqual(buttons, ["Cancel"]);
    t.is((await sendForm(browser, page, { decision: "allow", organization_id: own.id })).status, 422);
    const end = new URL((await browser.press(page, "Cancel")).url);
    t.is(end.searchParams.get("error"), "access_denied");
  }
});

test("two concurrent authorizations in one browser stay separate", async (t) => {
  const { second, member } = await createMember();
  const browser = new TestBrowser(service.url);
  await allow(service, member, authorizeUrl(service, app), { browser });
  const open = (scope: string) =>
    browser.open(authorizeUrl(service, app, { state: scope, scope, prompt: "consent" }));
  const [reading, writing] = ["openid links:read", "openid links:write"] as const;
  const [one, two] = [await open(reading), await open(writing)];
  for (const [page, { id }, scope] of [
    [one, own, reading],
    [two, second, writing],
  ] as const) {
    const end = new URL((await browser.press(page, "Allow", { organization_id: id })).url).searchParams;
    t.is(end.get("state"), scope);
    const { body } = await redeemCode(service, app, String(end.get("code")));
    t.is(body.scope, scope);
    t.is(decodeJwt(String(body.id_token)).organization_id, id);
    t.is(await organizationOf(body.access_token), id);
  }
});
