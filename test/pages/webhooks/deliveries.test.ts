import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { browserOf, createTeam, openAs } from "../../harness/clients/dashboard.ts";
import { follow, textsOn } from "../../harness/clients/pages.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import {
  type DeliveryBody,
  type DeliveryPage,
  type NewWebhookBody,
  until,
  type WebhookBody,
  waitUntilVerified,
} from "../../harness/webhooks.ts";

const { service, receiver, knex, respondWith } = await startWebhookService();

type Shown = WebhookBody & {
  status: string;
  failing_since: string | null;
  last_success_at: string | null;
  next_attempt_at: string | null;
  recent_deliveries: { succeeded: number; failed: number; pending: number };
};

/** Creates a webhook whose endpoint answers with a status, and signs its owner in in a browser. */
async function withReceiver(at: string, { status = 204, verified = true } = {}) {
  const team = await createTeam(service);
  const { api } = team.owner;
  const { browser } = await browserOf(service, team.owner);
  const answer = (code: number) => respondWith(at, code);
  answer(status);
  if (!verified) receiver.exposeVerification(at);
  const json = { url: receiver.url(at), events: ["link.created"] };
  const { body: webhook } = await api.send<NewWebhookBody>("POST", `${team.base}/webhooks`, { json });
  const path = `${team.base}/webhooks/${webhook.id}`;
  if (verified) await waitUntilVerified(api, path);
  const log = async (query = "") => (await api.get<DeliveryPage>(`${path}/deliveries${query}`)).body;
  return {
    ...team,
    api,
    browser,
    webhook,
    path,
    log,
    answer,
    open: (address = "") => browser.open(service.url + path + address),
    list: () => browser.open(`${service.url}${team.base}/webhooks`),
    look: async () => (await api.get<Shown>(path)).body,
    /** Opens the page of the first delivery in a list. */
    openFirst: (page: Page) =>
      browser.open(service.url + (entryOf(page)?.querySelector("a")?.attributes.href ?? "")),
    createLink: () => api.send("POST", `${team.base}/links`, { json: { url: "https://example.com/" } }),
    /** Sends a test event, and waits for its first attempt. */
    attempt: async () => {
      const { body: sent } = await api.send<{ id: string }>("POST", `${path}/test`);
      return until(async () =>
        (await log()).data.find(({ id, attempts }) => id === sent.id && attempts.length > 0),
      );
    },
    /** Waits until the newest delivery matches. */
    newest: (matches: (delivery: DeliveryBody) => boolean) =>
      until(async () => (await log()).data.slice(0, 1).find(matches)),
  };
}

const isSent = ({ status }: DeliveryBody) => status === "succeeded";

test("a link is delivered, and its delivery shows the request, and why a disabled webhook gets it no more", async (t) => {
  const { api, path, browser, createLink, newest, open, openFirst } = await withReceiver("/delivered");
  await createLink();
  const delivery = await newest((one) => isSent(one) && one.type === "link.created");
  const page = await open();
  t.regex(entryOf(page)?.text ?? "", /link\.created.*Delivered.*204/s);
  t.false(page.text.includes("Refresh"));
  t.deepEqual(JSON.parse(contentOf(await openFirst(page), "Request body")), delivery.request);
  await api.send("PATCH", path, { json: { enabled: false } });
  const disabled = await openFirst(await open());
  t.notRegex(disabled.text, /Send now|Resend/);
  t.regex(textOf(disabled, "main .alert"), /This webhook was disabled\. Enable it/);
  t.regex((await browser.press(disabled, "Enable webhook")).text, /Webhook enabled\./);
});

test("a failed delivery shows every attempt and is resent with the same ID", async (t) => {
  const { browser, open, openFirst, newest, attempt, answer } = await withReceiver("/unavailable");
  receiver.respond("/unavailable", (response) => response.writeHead(503).end("a response body"));
  const failed = await attempt();
  t.is(failed.status, "pending");
  const page = await open();
  t.regex(entryOf(page)?.text ?? "", /Retrying.*503/s);
  t.true(page.text.includes("Refresh"));
  t.false(page.text.includes("a response body"));
  t.regex(textsOn(page, "tbody button").join(), /^Send now webhook\.test at \S+$/, "and no other");
  const opened = await openFirst(page);
  t.is(contentOf(opened, "Response body"), "a response body");

  answer(204);
  const resent = await browser.press(opened, "Send now");
  t.regex(resent.text, /Delivery queued\. Reload the page to see its result/);
  t.is(resent.url, `${opened.url}?done=delivery-resent`, "it stays on the page");
  const delivered = await newest(isSent);
  t.is(delivered.id, failed.id);
  t.true(delivered.attempts.length > failed.attempts.length);
  const again = await openFirst(await open());
  t.regex((await browser.press(again, "Resend")).text, /Delivery queued/, "also what was delivered");
  await newest((delivery) => isSent(delivery) && delivery.attempts.length > delivered.attempts.length);
  const attempts = (await openFirst(await open())).html.querySelector("table")?.querySelectorAll("tbody tr");
  t.is(attempts?.length, delivered.attempts.length + 1);
});

test("an automatically disabled webhook shows the reason, can be enabled again, and gets what has failed", async (t) => {
  const { api, path, browser, open, newest, answer, list, look, log } = await withReceiver("/gone");
  answer(410);
  await api.send("POST", `${path}/test`);
  await newest(({ status }) => status === "failed");
  t.like(await look(), { enabled: false, disabled_reason: "The endpoint responded with 410 Gone." });
  t.regex((await list()).text, /title="The endpoint responded with 410 Gone\."><span[^>]*>Disabled</);
  const page = await open();
  t.regex(page.html.querySelector("main")?.text ?? "", /This webhook was disabled automatically.*410 Gone/);
  t.false(/Send test event|Resend/.test(page.text));
  answer(204);
  const enabled = await browser.press(page, "Enable");
  t.false(enabled.text.includes("410 Gone. Enable it"));
  t.like(await look(), { enabled: true, disabled_reason: null });
  const question = await follow(browser, await open(), "Resend all failed");
  t.regex(question.text, /1 delivery has failed\./);
  t.regex((await browser.press(question, "Resend 1 delivery")).text, /Failed deliveries queued/);
  await until(async () => (await log()).data.every(isSent) || undefined);
  t.regex((await browser.open(question.url)).text, /No deliveries of this webhook have failed/);
});

test("what an endpoint responds is shown as text, and no part of it becomes markup", async (t) => {
  const { attempt, open, openFirst } = await withReceiver("/markup");
  const markup = "</code></pre><script>alert(1)</script><img src=x onerror=alert(2)>";
  receiver.respond("/markup", (response) =>
    response.writeHead(500, { "x-markup": `"><b>${markup}` }).end(`${markup}&lt;csrf&gt;<csrf>`),
  );
  await attempt();
  const page = await openFirst(await open());
  t.is(page.html.querySelectorAll("main script, main img, main b").length, 0);
  t.true(page.text.includes("&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
  t.true(page.text.includes("&amp;lt;csrf&amp;gt;&lt;csrf&gt;"), "nor is it a place for a token");
  t.regex(page.html.querySelectorAll("table").at(-1)?.text ?? "", /x-markup/);
});

test("the list is filtered by links, and keeps its filter on the next page", async (t) => {
  const { createLink, log, browser, open } = await withReceiver("/links");
  for (let count = 0; count < 26; count++) await createLink();
  await until(async () => (await log("?limit=100")).data.every(isSent) || undefined);
  const created = await follow(browser, await follow(browser, await open(), "Delivered"), "link.created");
  t.is(new URL(created.url).search, "?status=succeeded&event_type=link.created");
  t.deepEqual(textsOn(created, "main nav [aria-current]"), ["Delivered", "link.created"]);
  t.is(created.html.querySelectorAll("tbody tr").length, 25);
  const next = await follow(browser, created, "Next");
  t.is(next.html.querySelectorAll("tbody tr").length, 1);
  t.is(new URL(next.url).searchParams.get("status"), "succeeded");
  const failed = await follow(browser, await open(), "Failed");
  t.regex(failed.text, /No deliveries found/);
  t.is((await follow(browser, failed, "Clear filters")).html.querySelectorAll("tbody tr").length, 25);
  const lost = await open("?status=lost");
  t.is(lost.status, 422);
  t.truthy(lost.html.querySelector("[role=alert]"));
});

const badgeIn = ({ html }: Page, where: string) => {
  const badge = html.querySelector(`${where} .badge`);
  return [badge?.text, badge?.classNames.split(" ")[1]];
};
const textOf = (page: Page, where: string) => textsOn(page, where)[0]?.replace(/\s+/g, " ") ?? "";
const IN_LIST = "[data-head=Status]";
const IN_DETAIL = ".panel [data-fact=status]";
const IN_LOG = "table tbody tr";

test("an unverified webhook waits for a test event, which can be sent from its page", async (t) => {
  const { api, path, browser, createLink, log, look, list, open, answer } = await withReceiver("/waiting", {
    status: 500,
    verified: false,
  });
  await until(async () => (await log()).data[0]?.attempts[0]);
  const shown = { status: "unverified", verified: false, failing_since: null, last_success_at: null };
  t.like(await look(), { ...shown, recent_deliveries: { succeeded: 0, failed: 0, pending: 1 } });
  await createLink();
  await until(async () => (await log()).data[1]);
  t.deepEqual(badgeIn(await list(), IN_LIST), ["Unverified", "warn"]);
  const page = await open();
  t.deepEqual(badgeIn(page, IN_DETAIL), ["Unverified", "warn"]);
  t.regex(textOf(page, "main dl"), /Last success ?never/);
  t.regex(
    textOf(page, "main .alert.bad"),
    /answered the test event with 500\. .* Next attempt: [A-Z][a-z]{2} /,
  );
  t.regex(textOf(page, `${IN_LOG}:nth-child(1)`), /^link\.created.*Waiting.*once the endpoint is verified$/);
  t.regex(textOf(page, `${IN_LOG}:nth-child(2)`), /^webhook\.test at \S+ ?Retrying ?500/);
  t.false(page.text.includes("Resend"));
  receiver.respond("/waiting", (response) => response.destroy());
  await browser.press(page, "Send test event");
  await until(async () => (await log()).data[0]?.attempts[0]);
  t.regex(textOf(await open(), "main .alert.bad"), /event couldn’t be delivered\. The connection was closed/);
  answer(204);
  await browser.press(page, "Send test event");
  await waitUntilVerified(api, path);
  t.deepEqual(badgeIn(await open(), IN_DETAIL), ["Active", "good"]);
});

test("a failing webhook shows since when it fails, its last success, and when the next attempt is due", async (t) => {
  const { base, member, browser, attempt, answer, look, list, open } = await withReceiver("/failing");
  await attempt();
  const healthy = await look();
  t.like(healthy, { next_attempt_at: null, recent_deliveries: { succeeded: 2, failed: 0, pending: 0 } });
  t.regex(textOf(await open(), "main dl"), /Last 24 hours ?100% of 2 delivered/);
  answer(500);
  await attempt();
  const failing = await look();
  const { last_success_at } = healthy;
  const recent_deliveries = { succeeded: 2, failed: 0, pending: 1 };
  t.like(failing, { status: "failing", enabled: true, last_success_at, recent_deliveries });
  const since = Date.parse(failing.failing_since ?? "");
  t.true(Date.parse(failing.next_attempt_at ?? "") > since);
  const shown = `, ${failing.failing_since?.slice(11, 16)} UTC`;
  const inTable = await list();
  t.deepEqual(badgeIn(inTable, IN_LIST), ["Failing", "bad"]);
  t.regex(textOf(inTable, IN_LIST), /next attempt in \d+ (min|h)/);
  const page = await open();
  t.deepEqual(badgeIn(page, IN_DETAIL), ["Failing", "bad"]);
  t.regex(textOf(page, "main dl"), /Last 24 hours ?67% of 3 delivered 1 waiting/);
  t.true(textOf(page, IN_DETAIL).includes(shown));
  t.regex(textOf(page, ".alert.bad"), /failing since .* Next attempt: [A-Z][a-z]{2} \d{1,2}, .* UTC\./);
  t.deepEqual(badgeIn(page, IN_LOG), ["Retrying", "warn"]);

  const sectionOf = (shown: Page) => textsOn(shown, ".sections a[href$=/webhooks]")[0];
  const settings = await browser.open(`${service.url}${base}/settings`);
  t.is(sectionOf(settings), "Webhooks 1 failing");
  const rejected = await browser.press(settings, "Rename organization", { name: " " });
  t.is(sectionOf(rejected), "Webhooks 1 failing", "also on a page that answers a form");
  t.is(sectionOf((await browserOf(service, member)).page), undefined);

  answer(204);
  await attempt();
  t.like(await look(), { status: "active", failing_since: null });
  t.is((await open()).html.querySelector(".alert.bad"), null);
});

test("a webhook is paused on the Free plan, even if it was failing", async (t) => {
  const { organization, browser, attempt, answer, look, list, open, openFirst } =
    await withReceiver("/paused");
  answer(500);
  await attempt();
  await service.storage.organizations.setPlan(organization.id, "free", OPERATOR);
  t.is((await look()).status, "paused");
  t.deepEqual(badgeIn(await list(), IN_LIST), ["Paused", "warn"]);
  const page = await open();
  t.deepEqual(badgeIn(page, IN_DETAIL), ["Paused", "warn"]);
  t.regex(textOf(page, "main .alert"), /^Webhooks are paused on the Free plan\. Upgrade/);
  t.is(page.html.querySelector(".alert.bad"), null);
  t.deepEqual(textsOn(page, "main form"), ["Show secret"]);
  t.is(textOf(page, `${IN_LOG} [data-head="Next attempt"]`).trim(), "", "nothing is sent");
  const delivery = await openFirst(page);
  t.notRegex(delivery.text, /Send now|Resend/);
  t.regex(textOf(delivery, "main .alert"), /paused on the Free plan/);
  t.is((await follow(browser, delivery, "Compare plans")).status, 200);
});

test("the page of a webhook that is blocked or paused explains until when", async (t) => {
  const { webhook, attempt, answer, open } = await withReceiver("/blocked");
  answer(500);
  await attempt();
  const until = Date.now() + 8 * 60_000;
  const alertAfter = async (values: object) => {
    await knex("webhooks").where({ id: webhook.id }).update(values);
    return textOf(await open(), ".alert.bad");
  };
  t.regex(
    await alertAfter({ blocked_until: until, failures: 11 }),
    / responded with 500\. Paused until .* UTC after 11 failures in a row\./,
  );
  t.regex(
    await alertAfter({ blocked_until: 1, paused_until: until }),
    / Paused until .* with Retry-After\.$/,
  );
});

test("a page's heading has the URL of its webhook, but its title, which browsers record, only the host", async (t) => {
  const { owner, base } = await createTeam(service);
  const json = { url: "https://hooks.northwind.invalid/one?key=1", events: ["link.created"] };
  const { body } = await owner.api.send<NewWebhookBody>("POST", `${base}/webhooks`, { json });
  const { html } = (await openAs(service, owner, `${base}/webhooks/${body.id}`)).page;
  t.is(html.querySelector("h1")?.text, "hooks.northwind.invalid/one?key=1");
  t.is(html.querySelector("title")?.text, "hooks.northwind.invalid · Team · linkgate");
});

/** The parser takes the elements in a `pre` for text. */
function contentOf({ html }: Page, label: string): string {
  return (html.querySelector(`pre[aria-label="${label}"]`)?.text ?? "").replace(/^<code>|<\/code>$/g, "");
}

const entryOf = ({ html }: Page) => html.querySelector("tbody tr");
