import test from "ava";
import { RESET_LINK_MS } from "../../../server/credentials/reset-links.ts";
import { isProblem } from "../../harness/clients/api.ts";
import { runCodeFlow } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { auditOf, createTeam, openAs } from "../../harness/clients/dashboard.ts";
import { isAcceptedByApi, refresh } from "../../harness/clients/oauth.ts";
import { alertOn } from "../../harness/clients/pages.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { OPERATOR, postForm, startTestService, type TestUser } from "../../harness/service.ts";

const service = await startTestService();
const { organizations } = service.storage;

const FRESH = "an entirely new password";

const linkFor = async ({ id }: TestUser) =>
  `${service.url}/auth/reset-password/${await service.storage.accounts.createResetToken(id, RESET_LINK_MS)}`;

async function withLink() {
  const user = await service.createUser([]);
  return { user, url: await linkFor(user) };
}

async function setPassword(url: string, password = FRESH) {
  const answer = await postForm(url, { password });
  return { status: answer.status, text: await answer.text() };
}

const signsIn = async ({ username }: TestUser, password: string) =>
  (await postForm(`${service.url}/auth/login`, { username, password })).ok;

test.serial(
  "a reset link shows its page, refuses a weak password, and sets a new one once, which ends the user's other links",
  async (t) => {
    const { user, url } = await withLink();
    const others = [await linkFor(user), (await withLink()).url];
    const browser = new TestBrowser(service.url);
    const page = await browser.open(url);
    t.is(page.status, 200);
    t.is(page.headers.get("cache-control"), "no-store");
    t.true(page.html.text.includes(user.username));
    const { maxlength } = page.html.querySelector("#password")?.attributes ?? {};
    t.is(maxlength, undefined, "a browser would silently truncate a longer one");
    const again = await browser.open(url);
    t.is(again.status, 200, "opening the page doesn't use the link up");

    const weak = await browser.press(page, "Save password", { password: "seven77" });
    t.is(weak.status, 422);
    t.truthy(weak.html.querySelector("[role=alert]"));
    t.false(weak.text.includes("seven77"));
    t.is((await setPassword(url, user.username)).status, 422);
    const saved = await browser.press(weak, "Save password", { password: FRESH });
    t.is(saved.status, 200);
    t.regex(saved.text, /Password saved/);
    t.true(await signsIn(user, FRESH));
    t.false(await signsIn(user, user.password), "the old password is no longer valid");

    const used = await browser.open(url);
    t.is(used.status, 404);
    t.is(used.html.querySelector("a")?.attributes.href, "/auth/login", "the page has a way on");
    const second = await setPassword(url, "yet another password");
    t.is(second.status, 404);
    t.regex(second.text, /This link is no longer valid/);
    t.deepEqual(await Promise.all(others.map(async (link) => (await setPassword(link)).status)), [404, 200]);
    t.false(await signsIn(user, "yet another password"));
  },
);

test.serial("a reset ends every session, grant and token of the user", async (t) => {
  const { app, user } = await createApp(service);
  const url = await linkFor(user);
  const browser = new TestBrowser(service.url);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { browser });
  const signedIn = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
  t.regex(signedIn.text, /<h1>Allow /, "the session is valid");
  t.true(await isAcceptedByApi(service, accessToken));

  t.is((await setPassword(url)).status, 200);
  t.false(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  const after = await browser.open(authorizeUrl(service, app));
  t.truthy(after.html.querySelector("#password"), "the browser has to sign in again");
  const consent = await browser.press(signedIn, "Allow").catch((error) => error);
  t.false(String(consent.url).includes("code="), "an earlier consent page issues no code");
});

test.serial("a link expires after an hour, and the sign-in page says whom to ask for another", async (t) => {
  const { user, url } = await withLink();
  const other = await linkFor(user);
  advanceClock(59 * 60_000);
  t.is((await fetch(other)).status, 200);
  advanceClock(61_000);
  t.is((await fetch(url)).status, 404);
  t.is((await setPassword(url)).status, 404);
  t.regex(await (await fetch(`${service.url}/auth/login`)).text(), /Ask an organization owner or your /);
});

const add = (organizationId: string, userId: string) =>
  organizations.addMember(organizationId, userId, "owner", OPERATOR);

test("the audit log of every organization of the user names who created the link, also the operator", async (t) => {
  const team = await createTeam(service);
  const { other, owner, member } = team;
  for (const { id } of [owner, member]) await add(other.id, id);
  const path = `${team.base}/members/${member.id}/reset-link`;
  const { body } = await owner.api.send<{ url: string }>("POST", path);
  t.is((await setPassword(body.url)).status, 200);
  for (const { id } of [team.organization, other]) {
    const base = `/dashboard/organizations/${id}`;
    const [entry, ...others] = await auditOf({ base, owner }, "&type=member.password_changed");
    t.deepEqual(others, []);
    t.deepEqual(entry?.data, { user_id: member.id, reset_link_created_by: owner.id });
    const how = `using a reset link created by ${owner.username}`;
    t.is(entry?.summary, `set a new password for ${member.username}, ${how}`);
  }
  await setPassword(await linkFor(member));
  const [entry] = await auditOf(team, "&type=member.password_changed");
  t.regex(entry?.summary ?? "", /using a reset link created by the operator$/);
});

test("a reset link is refused for a user without a password, or of an organization that the owner doesn't own", async (t) => {
  const { base, organization, owner, member, other } = await createTeam(service);
  await add(other.id, member.id);
  const path = `${base}/members/${member.id}/reset-link`;
  isProblem(t, await owner.api.send("POST", path), { status: 403, code: "shared_account" });
  await organizations.addMember(other.id, owner.id, "admin", OPERATOR);
  isProblem(t, await owner.api.send("POST", path), { status: 403, code: "shared_account" });
  const { browser, page } = await openAs(service, owner, `${base}/members`);
  const refused = await browser.press(page, `Create reset link for ${member.username}`);
  t.is(refused.status, 403);
  t.regex(alertOn(refused), /organization that you don't own/);
  const membership = { organizationId: organization.id, role: "member" } as const;
  const external = await service.storage.accounts.create("external", null, OPERATOR, membership);
  const reply = await owner.api.send("POST", `${base}/members/${external?.id}/reset-link`);
  isProblem(t, reply, { status: 409, code: "no_password" });
});
