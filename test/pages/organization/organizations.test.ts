import test from "ava";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { toLocalTime } from "../../../resources/time-zone.ts";
import { apiAt, BROWSER, isMissing, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import {
  browserOf,
  createColleague,
  createTeam,
  createTeamWithClient,
  openAs,
} from "../../harness/clients/dashboard.ts";
import { isAcceptedByApi, postAsClient } from "../../harness/clients/oauth.ts";
import { isMarked, textsOn, typedIn } from "../../harness/clients/pages.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";
import { uniqueUrl } from "../../harness/webhooks.ts";

export const databases = "all";

const service = await startTestService({ SUPPORT_CONTACT: "mailto:support@links.example" });
const managed = await startTestService({ SELF_SERVICE_PLANS: "off" });

test("a user who creates an organization becomes its owner, and can't set more than its name", async (t) => {
  const { api } = await createColleague(service, undefined);
  const created = await api.send<{ organization: { id: string } }>("POST", "/dashboard/organizations", {
    json: { name: "  Acme & Söhne " },
  });
  t.is(created.status, 201);
  const { id } = created.body.organization;
  t.deepEqual(created.body, { organization: { id, name: "Acme & Söhne", plan: "free" } } as never);
  const { body } = await api.send<{ organizations: object[] }>("GET", "/dashboard/me");
  t.deepEqual(body.organizations, [{ id, name: "Acme & Söhne", plan: "free", role: "owner" }]);
  const json = { name: "Acme", plan: "premium" };
  const refused = await api.send("POST", "/dashboard/organizations", { json });
  isProblem(t, refused, { status: 422, code: "unknown_field", fields: ["plan"] });
});

test("the overview shows a box for the first link, then top links, activity to managers, and steps that can be dismissed", async (t) => {
  const { base, admin, member } = await createTeam(service);
  const { browser, page: empty } = await browserOf(service, admin);
  const stepsOf = (page: Page) => textsOn(page, ".beside > div .checklist li");
  const steps = ["Create your first link", "Connect an AI client or app", "Invite a colleague (done)"];
  t.deepEqual(stepsOf(empty), steps);
  t.is(empty.html.querySelector(".activity"), null);
  await browser.press(empty, "Create link", { url: "https://example.com/first" });
  const json = { url: "https://example.com/", title: "Most clicked" };
  const { body: link } = await member.api.send<LinkBody>("POST", `${base}/links`, { json });
  for (let clicks = 0; clicks < 3; clicks++)
    await fetch(link.short_url, { redirect: "manual", headers: { "user-agent": BROWSER } });

  const page = await browser.open(service.url + base);
  t.is(stepsOf(page)[0], "Create your first link (done)");
  t.is(page.html.querySelector(".quick"), null);
  t.is(page.html.querySelector(".shares td a")?.text, "Most clicked");
  t.is(page.html.querySelector(".figure")?.text, "3");
  t.regex(page.html.querySelector(".activity")?.text ?? "", /created link/);
  t.notRegex(page.html.querySelector(".activity")?.text ?? "", /signed in/);
  t.deepEqual(stepsOf(await browser.press(page, "Dismiss")), []);
  t.deepEqual(stepsOf(await browser.open(service.url + base)), []);

  const { page: others } = await browserOf(service, member);
  t.is(others.html.querySelector(".activity"), null);
  t.notRegex(others.html.querySelector("aside")?.text ?? "", /Webhooks/);
});

test("the dashboard lists a user's organizations, and then opens the one that was viewed last", async (t) => {
  const own = [await service.createOrganization("One"), await service.createOrganization("Two")];
  const { browser, page } = await browserOf(service, await service.createUser(own.map(({ id }) => id)));
  t.deepEqual(textsOn(page, "main h2 a").toSorted(), ["One", "Two"]);
  for (const { id, name } of own) {
    const link = page.html.querySelector(`header .sheet a[href$="${id}"]`);
    await browser.open(service.url + link?.attributes.href);
    const home = await browser.open(`${service.url}/dashboard`);
    t.deepEqual(textsOn(home, "header [aria-current] bdi, h1"), [name, name]);
  }
});

test("the fallback URL of an organization is set, shown, audited and removed", async (t) => {
  const { base, admin } = await createTeam(service);
  const json = { url: "https://example.com/" };
  const { body: link } = await admin.api.send<LinkBody>("POST", `${base}/links`, { json });
  await admin.api.send("PATCH", `${base}/links/${link.id}`, { json: { archived: true } });
  const target = async () => (await fetch(link.short_url, { redirect: "manual" })).headers.get("location");
  const { browser, page } = await openAs(service, admin, `${base}/settings`);

  const saved = await browser.press(page, "Save fallback URL", { fallback_url: " example.org/sorry " });
  t.is(typedIn(saved, "fallback_url"), "https://example.org/sorry");
  t.is(await target(), "https://example.org/sorry");

  const rejected = await browser.press(saved, "Save fallback URL", { fallback_url: link.short_url });
  isMarked(t, rejected, "fallback_url", /must not point to this service/i);
  t.is(typedIn(rejected, "name"), typedIn(saved, "name"));

  const removed = await browser.press(saved, "Save fallback URL", { fallback_url: "" });
  t.is(typedIn(removed, "fallback_url"), "");
  t.is(await target(), null);
});

test("the time zone of an organization is chosen, and its clicks are counted and shown by it", async (t) => {
  const { base, admin, member } = await createTeam(service);
  const json = { url: "https://example.com/" };
  const { body: link } = await admin.api.send<LinkBody>("POST", `${base}/links`, { json });
  const { browser, page } = await openAs(service, admin, `${base}/settings`);
  // It is tomorrow there, or today with the same time of day.
  const time_zone = new Date(Date.now()).getUTCHours() < 11 ? "Pacific/Pago_Pago" : "Pacific/Kiritimati";
  const saved = await browser.press(page, "Save time zone", { time_zone });
  t.is(typedIn(saved, "time_zone"), time_zone);
  await fetch(link.short_url, { redirect: "manual", headers: { "user-agent": BROWSER } });
  const { body } = await member.api.get<AnalyticsView>(`${base}/analytics`);
  t.is(body.time_zone, time_zone);
  t.is(body.days.at(-1)?.date, new Date(toLocalTime(Date.now(), time_zone)).toISOString().slice(0, 10));
  t.is(body.days.at(-1)?.clicks, 1);
  const analytics = await browser.open(`${service.url}${base}/analytics`);
  t.regex(textsOn(analytics, ".intro").join(), new RegExp(`in ${time_zone}\\. Change time zone`));
  const wrong = await admin.api.send("PUT", `${base}/time-zone`, { json: { time_zone: "Europe/Basel" } });
  isProblem(t, wrong, { status: 422, code: "invalid_time_zone", fields: ["time_zone"] });
});

test("with SELF_SERVICE_PLANS=off plans can't be changed in the dashboard, and the page says so", async (t) => {
  const { organization, base, owner } = await createTeam(managed, "free");
  const path = `${base}/plan`;
  const reply = await owner.api.send("PUT", path, { json: { plan: "premium" } });
  isProblem(t, reply, { status: 403, code: "self_service_disabled" });
  t.is((await managed.storage.organizations.find(organization.id))?.plan, "free");
  const { browser, page } = await openAs(managed, owner, path);
  t.regex(page.text, /operator of this service manages plans/);
  t.is(page.html.querySelector(`form[action="${path}"]`), null);
  await managed.storage.organizations.setPlan(organization.id, "premium", OPERATOR);
  t.is((await browser.open(`${managed.url}${path}/free`)).status, 403, "no downgrade page either");
});

test("the downgrade page lists what stops, for lower plans only; then pages show the usage and offer plans", async (t) => {
  const { base, owner, member, organization } = await createTeam(service, "premium");
  const app = await service.createOrganization();
  await tokensFor(service, app, member, { organizationId: organization.id });
  await owner.api.send("POST", `${base}/links`, { json: { url: `https://example.com/${"x".repeat(200)}` } });
  for (const enabled of [true, true, false]) {
    const json = { url: uniqueUrl(), events: ["link.created"], enabled };
    await owner.api.send("POST", `${base}/webhooks`, { json });
  }
  const { browser, page: lower } = await openAs(service, owner, `${base}/plan/growth`);
  t.regex(lower.html.text, /from 3,000 to 600 requests per minute.*from 1,000,000 to 100,000 per day/s);
  const page = await browser.open(`${service.url}${base}/plan/free`);
  t.regex(page.html.text, /1 authorized app loses access/);
  t.regex(page.html.text, /2 webhooks stop receiving events/);
  const done = await browser.press(page, "Downgrade to Free");
  t.regex(done.text, /Plan changed/);
  t.regex(done.html.text, /1 of 1,000\b.*0\.\d KB of /s);
  for (const path of ["client", "connect"])
    t.is(textsOn(await browser.open(`${service.url}${base}/${path}`), "main a.button")[0], "Compare plans");
  for (const plan of ["free", "growth", "gold"])
    isMissing(t, await owner.api.send("GET", `${base}/plan/${plan}`));
});

test("the pages of a suspended organization name the reason and the contact", async (t) => {
  const { organization, owner } = await createTeam(service);
  await service.storage.suspensions.suspend(organization.id, "Phishing", OPERATOR);
  const me = await owner.api.get<{ organizations: { suspended?: { reason: string } }[] }>("/dashboard/me");
  t.is(me.body.organizations[0]?.suspended?.reason, "Phishing");
  const banner = (await browserOf(service, owner)).page.html.querySelector(".alert.bad");
  t.regex(banner?.text ?? "", /This organization has been suspended.*Reason: Phishing/s);
  t.is(banner?.querySelector("a")?.attributes.href, "mailto:support@links.example");
});

test("an owner disables and enables the client, unless the operator disabled it", async (t) => {
  const { organization, base, owner } = await createTeam(service);
  const { browser, page: form } = await openAs(service, owner, `${base}/client/disable`);
  const disabled = await browser.press(form, "Disable client", { reason: "A key leaked" });
  t.regex(textsOn(disabled, ".alert.bad").join(), /An owner disabled this client.*A key leaked/s);
  await browser.press(disabled, "Enable client");
  const { clients } = service.storage;
  t.is((await clients.findByOrganization(organization.id))?.disabled, null);
  await owner.api.send("POST", `${base}/client/disable`, { json: {} });
  await clients.disable(organization.id, null, OPERATOR);
  t.is((await owner.api.send("POST", `${base}/client/disable`, { json: { reason: "Mine" } })).status, 200);
  const refused = await owner.api.send("POST", `${base}/client/enable`);
  isProblem(t, refused, { status: 403, code: "disabled_by_operator" });
});

test("deleting an organization ends its tokens, clients and links immediately, after its exact name", async (t) => {
  const { base, owner, member, client: own } = await createTeamWithClient(service);
  const { id } = own;
  const link = await apiAt(service.url, await service.token(own)).createLink();
  const foreign = await service.createOrganization();
  const visitor = await service.createUser([foreign.id]);
  const tokens = [
    await service.token(own),
    // Another organization's app acts for this one, and this one's app for another.
    (await tokensFor(service, foreign, member, { organizationId: id })).access_token,
    (await tokensFor(service, own, visitor)).access_token,
  ];
  for (const name of ["team", "Team ", "", undefined]) {
    const reply = await owner.api.send("POST", `${base}/delete`, { json: { name } });
    isProblem(t, reply, { status: 422, code: "invalid_name", fields: ["name"] });
  }
  for (const token of tokens) t.true(await isAcceptedByApi(service, token));

  t.is((await owner.api.send("POST", `${base}/delete`, { json: { name: "Team" } })).status, 204);

  for (const token of tokens) t.false(await isAcceptedByApi(service, token));
  const refused = await postAsClient(service, "token", own, { grant_type: "client_credentials" });
  t.like(refused, { status: 401, body: { error: "invalid_client" } });
  t.is((await fetch(link.short_url, { redirect: "manual" })).status, 410);
  isMissing(t, await owner.api.send("GET", base));
});
