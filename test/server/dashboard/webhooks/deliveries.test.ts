import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isMissing, isProblem, type LinkBody } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import type { Page } from "../../../harness/clients/test-browser.ts";
import { startReceiver, verify } from "../../../harness/receiver.ts";
import { startTestService } from "../../../harness/service.ts";
import {
  type DeliveryBody,
  type DeliveryPage,
  type NewWebhookBody,
  until,
  type WebhookBody,
  waitUntilVerified,
} from "../../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });

test.after.always(async () => {
  await service.close();
  await receiver.close();
});

/** Creates a webhook with its own path at the receiver, and signs its owner in in a browser. */
async function withReceiver(at: string, events = ["link.created"]) {
  const team = await createTeam(service);
  const { api } = team.owner;
  const { browser } = await browserOf(service, team.owner);
  const json = { url: receiver.url(at), events };
  const { body: webhook } = await api.send<NewWebhookBody>("POST", `${team.base}/webhooks`, { json });
  const path = `${team.base}/webhooks/${webhook.id}`;
  await waitUntilVerified(api, path);
  const log = async (query = "") => (await api.get<DeliveryPage>(`${path}/deliveries${query}`)).body;
  return {
    ...team,
    api,
    browser,
    webhook,
    path,
    log,
    open: (address = "") => browser.open(service.url + path + address),
    /** Opens the page of the first delivery in a list. */
    openFirst: (page: Page) =>
      browser.open(service.url + (entryOf(page)?.querySelector("a")?.attributes.href ?? "")),
    createLink: async () =>
      (await api.send<LinkBody>("POST", `${team.base}/links`, { json: { url: "https://example.com/" } }))
        .body,
    /** Waits until the newest delivery matches. */
    newest: (matches: (delivery: DeliveryBody) => boolean) =>
      until(async () => (await log()).data.slice(0, 1).find(matches)),
  };
}

const isSent = ({ status }: DeliveryBody) => status === "succeeded";

test("a link created in the dashboard is delivered, and the delivery log shows the request", async (t) => {
  const { createLink, webhook, newest, open, openFirst } = await withReceiver("/delivered");
  const link = await createLink();
  const [request] = await receiver.waitFor("/delivered", 1);
  if (!request) return t.fail();
  t.deepEqual(verify(request, webhook.secret).data, link);
  const delivery = await newest(isSent);
  t.is(JSON.stringify(delivery.request), request.text);
  t.like(delivery.attempts, [{ status: 204 }]);

  const page = await open();
  t.regex(entryOf(page)?.text ?? "", /link\.created.*Delivered.*204/s);
  t.false(page.text.includes("Refresh"));
  const opened = await openFirst(page);
  t.deepEqual(JSON.parse(contentOf(opened, "Request body")), delivery.request);
});

test("a test event sent from the page of a webhook is delivered to that webhook only", async (t) => {
  const { api, base, browser, open, webhook, newest } = await withReceiver("/tested");
  const json = { url: receiver.url("/untested"), events: ["webhook.test"] };
  await api.send("POST", `${base}/webhooks`, { json });
  const sent = await browser.press(await open(), "Send test event");
  t.regex(sent.text, /Test event queued/);
  const [request] = await receiver.waitFor("/tested", 1);
  if (!request) return t.fail();
  t.deepEqual(verify(request, webhook.secret).data, { webhook_id: webhook.id, verification: false });
  await newest(isSent);
  t.deepEqual(receiver.received("/untested"), []);
});

test("a failed delivery shows every attempt and is resent with the same ID", async (t) => {
  const { api, path, browser, open, openFirst, newest } = await withReceiver("/unavailable");
  receiver.respond("/unavailable", (response) => response.writeHead(503).end("a response body"));
  await api.send("POST", `${path}/test`);
  const failed = await newest(({ attempts }) => attempts.length > 0);
  t.is(failed.status, "pending");
  const page = await open();
  t.regex(entryOf(page)?.text ?? "", /Retrying.*503/s);
  t.true(page.text.includes("Refresh"));
  t.false(page.text.includes("a response body"));
  const opened = await openFirst(page);
  t.is(contentOf(opened, "Response body"), "a response body");

  receiver.respond("/unavailable", (response) => response.writeHead(204).end());
  const resent = await browser.press(opened, "Send now");
  t.regex(resent.text, /Delivery queued/);
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

test("the list sends a delivery that waits for its retry now, and offers no button for what was delivered", async (t) => {
  const { api, path, browser, open, newest, log } = await withReceiver("/retried");
  receiver.respond("/retried", (response) => response.writeHead(503).end());
  await api.send("POST", `${path}/test`);
  await newest(({ status, attempts }) => status === "pending" && attempts.length > 0);
  const buttons = (page: Page) => page.html.querySelectorAll("tbody form button");
  const page = await open();
  t.deepEqual(
    buttons(page).map(({ text }) => text.replace(/ at .*/, "")),
    ["Send now webhook.test"],
  );
  receiver.respond("/retried", (response) => response.writeHead(204).end());
  const [button] = buttons(page);
  if (!button) return t.fail();
  t.regex((await browser.click(page, button)).text, /Delivery queued/);
  await newest(isSent);
  t.true((await log()).data.every(isSent));
  t.is(buttons(await open()).length, 0);
});

test("a delivery that can't be resent says why, and offers the step that helps", async (t) => {
  const { api, organization, path, browser, open, openFirst, newest, createLink } =
    await withReceiver("/obstacles");
  await createLink();
  await newest(isSent);
  const openDelivery = async () => {
    const page = await openFirst(await open());
    t.false(/Send now|Resend/.test(page.text));
    return page;
  };
  const alertOf = ({ html }: Page) => html.querySelector("main .alert")?.text ?? "";

  await api.send("PATCH", path, { json: { enabled: false } });
  const disabled = await openDelivery();
  t.regex(alertOf(disabled), /This webhook was disabled\. Enable it/);
  t.regex((await browser.press(disabled, "Enable webhook")).text, /Webhook enabled\./);

  receiver.exposeVerification("/moved");
  receiver.respond("/moved", (response) => response.writeHead(500).end());
  await api.send("PATCH", path, { json: { url: receiver.url("/moved") } });
  const filter = "?event_type=link.created";
  const unverified = await openFirst(await open(filter));
  t.regex(alertOf(unverified), /hasn’t accepted a test event yet/);
  receiver.respond("/moved", (response) => response.writeHead(204).end());
  t.regex((await browser.press(unverified, "Send test event")).text, /Test event queued/);
  await waitUntilVerified(api, path);
  t.regex((await browser.press(await openFirst(await open(filter)), "Resend")).text, /Delivery queued/);

  await service.storage.organizations.setPlan(organization.id, "free", OPERATOR);
  const paused = await openDelivery();
  t.regex(alertOf(paused), /paused on the Free plan/);
  const step = paused.html.querySelectorAll("main a").find(({ text }) => text === "Compare plans");
  t.is((await browser.open(service.url + step?.attributes.href)).status, 200);
});

test("an automatically disabled webhook shows the reason and can be enabled again", async (t) => {
  const { api, base, path, browser, open, newest } = await withReceiver("/gone");
  receiver.respond("/gone", (response) => response.writeHead(410).end());
  await api.send("POST", `${path}/test`);
  const { id } = await newest(({ status }) => status === "failed");
  const shown = await api.get<{ enabled: boolean; disabled_reason: string }>(path);
  t.like(shown.body, { enabled: false, disabled_reason: "The endpoint responded with 410 Gone." });
  t.regex(
    (await browser.open(`${service.url}${base}/webhooks`)).text,
    /Disabled<.*The endpoint responded with 410 Gone/s,
  );
  const page = await open();
  t.regex(page.html.querySelector("main")?.text ?? "", /This webhook was disabled automatically.*410 Gone/);
  t.false(/Send test event|Resend/.test(page.text));
  for (const address of ["test", `deliveries/${id}/resend`]) {
    const rejected = await api.send("POST", `${path}/${address}`);
    t.is(rejected.status, 409, address);
    isProblem(t, rejected, { status: 409, code: "webhook_disabled" });
  }
  const enabled = await browser.press(page, "Enable");
  t.false(enabled.text.includes("410 Gone. Enable it"));
  t.like((await api.get(path)).body, { enabled: true, disabled_reason: null });
});

test("a test event from a page loaded before the webhook was disabled is rejected with the reason", async (t) => {
  const { api, path, browser, open } = await withReceiver("/late");
  const page = await open();
  await api.send("PATCH", path, { json: { enabled: false } });
  const rejected = await browser.press(page, "Send test event");
  t.is(rejected.status, 409);
  t.regex(rejected.html.querySelector("[role=alert]")?.text ?? "", /disabled\. Enable it first/);
  t.deepEqual(receiver.received("/late"), []);
});

test("what an endpoint responds is shown as text, and no part of it becomes markup", async (t) => {
  const { api, path, newest, open, openFirst } = await withReceiver("/markup");
  const markup = "</code></pre><script>alert(1)</script><img src=x onerror=alert(2)>";
  receiver.respond("/markup", (response) =>
    response.writeHead(500, { "x-markup": `"><b>${markup}` }).end(`${markup}&lt;csrf&gt;<csrf>`),
  );
  await api.send("POST", `${path}/test`);
  await newest(({ attempts }) => attempts.length > 0);
  const page = await openFirst(await open());
  t.is(page.html.querySelectorAll("main script, main img, main b").length, 0);
  t.true(page.text.includes("&lt;&#x2F;pre&gt;&lt;script&gt;alert(1)&lt;&#x2F;script&gt;"));
  t.true(page.text.includes("&amp;lt;csrf&amp;gt;&lt;csrf&gt;"), "nor is it a place for a token");
  t.regex(page.html.querySelectorAll("table").at(-1)?.text ?? "", /x-markup/);
});

test("the list is filtered by links, and keeps its filter on the next page", async (t) => {
  const { createLink, log, browser, open } = await withReceiver("/links");
  for (let count = 0; count < 26; count++) await createLink();
  await until(async () => (await log("?limit=100")).data.every(isSent) || undefined);
  const follow = async (page: Page, text: string) => {
    const link = page.html.querySelectorAll("main a").find((one) => one.text === text);
    return browser.open(new URL(link?.attributes.href ?? "", page.url).href);
  };
  const created = await follow(await follow(await open(), "Delivered"), "link.created");
  t.is(new URL(created.url).search, "?status=succeeded&event_type=link.created");
  t.deepEqual(
    created.html.querySelectorAll("main nav [aria-current]").map(({ text }) => text),
    ["Delivered", "link.created"],
  );
  t.is(created.html.querySelectorAll("tbody tr").length, 25);
  const next = await follow(created, "Next");
  t.is(next.html.querySelectorAll("tbody tr").length, 1);
  t.is(new URL(next.url).searchParams.get("status"), "succeeded");
  const failed = await follow(await open(), "Failed");
  t.regex(failed.text, /No deliveries found/);
  t.is((await follow(failed, "Clear filters")).html.querySelectorAll("tbody tr").length, 25);
  t.is((await open("?status=lost")).status, 422);
});

test("a page says how many deliveries have failed, and resends them", async (t) => {
  const { api, path, browser, open, newest, log } = await withReceiver("/lost");
  receiver.respond("/lost", (response) => response.writeHead(410).end());
  await api.send("POST", `${path}/test`);
  await newest(({ status }) => status === "failed");
  t.false((await open()).text.includes("Resend all failed"), "the webhook is disabled");
  receiver.respond("/lost", (response) => response.writeHead(204).end());
  await api.send("PATCH", path, { json: { enabled: true } });
  const page = await open();
  const link = page.html.querySelectorAll("a").find(({ text }) => text === "Resend all failed");
  const question = await browser.open(new URL(link?.attributes.href ?? "", page.url).href);
  t.regex(question.text, /1 delivery has failed\./);
  t.regex((await browser.press(question, "Resend 1 delivery")).text, /Failed deliveries queued/);
  await until(async () => (await log()).data.every(isSent) || undefined);
  t.regex((await browser.open(question.url)).text, /No deliveries of this webhook have failed/);
});

test("deliveries are paginated", async (t) => {
  const { createLink, log, browser, open } = await withReceiver("/many");
  // One more than these: the test event that verified the webhook.
  for (let count = 0; count < 26; count++) await createLink();
  await until(async () => (await log("?limit=100")).data.every(isSent) || undefined);
  const first = await open();
  t.is(first.html.querySelectorAll("tbody tr").length, 25);
  const next = first.html.querySelectorAll("a").find(({ text }) => text === "Next");
  const second = await browser.open(new URL(next?.attributes.href ?? "", first.url).href);
  t.is(second.html.querySelectorAll("tbody tr").length, 2);
  const { data, next_cursor } = await log("?limit=20");
  t.is(data.length, 20);
  t.is((await log(`?limit=20&cursor=${next_cursor}`)).data.length, 7);
});

const INVALID_QUERIES: [query: string, code: string, field: string][] = [
  ["limit=0", "invalid_limit", "limit"],
  ["limit=many", "invalid_limit", "limit"],
  ["cursor=invented", "invalid_cursor", "cursor"],
  ["status=lost", "invalid_status", "status"],
  ["event_type=link", "invalid_event_type", "event_type"],
  ["search=link", "unknown_field", "search"],
];

test("an invalid query for deliveries is rejected with the name of the field", async (t) => {
  const { api, path, open } = await withReceiver("/wrong");
  for (const [query, code, field] of INVALID_QUERIES) {
    const reply = await api.send("GET", `${path}/deliveries?${query}`);
    t.is(reply.status, 422, query);
    isProblem(t, reply, { status: 422, code, fields: [field] });
  }
  const page = await open("?cursor=invented");
  t.is(page.status, 422);
  t.truthy(page.html.querySelector("[role=alert]"));
});

test("a delivery of another webhook or an unknown delivery can't be resent", async (t) => {
  const [one, two] = [await withReceiver("/first"), await withReceiver("/second")];
  await one.createLink();
  const { id } = await one.newest(isSent);
  for (const path of [two.path, one.path.replace(one.webhook.id, two.webhook.id)]) {
    isMissing(t, await two.api.send("POST", `${path}/deliveries/${id}/resend`));
  }
  isMissing(t, await one.api.send("POST", `${one.path}/deliveries/evt_nothing/resend`));
  t.is(receiver.received("/first").length, 1);
  t.deepEqual(receiver.received("/second"), []);
});

/** The parser takes the elements in a `pre` for text. */
function contentOf({ html }: Page, label: string): string {
  return (html.querySelector(`pre[aria-label="${label}"]`)?.text ?? "").replace(/^<code>|<\/code>$/g, "");
}

const entryOf = ({ html }: Page) => html.querySelector("tbody tr");

test("the reason for disabling a webhook automatically is on its page, in the list and in the audit log", async (t) => {
  const { base, owner } = await createTeam(service);
  const { api } = owner;
  receiver.respond("/gone", (response) => response.writeHead(410).end());
  const url = receiver.url("/gone");
  const { body: webhook } = await api.send<NewWebhookBody>("POST", `${base}/webhooks`, {
    json: { url, events: ["webhook.test"] },
  });
  const path = `${base}/webhooks/${webhook.id}`;
  await waitUntilVerified(api, path);
  await api.send("POST", `${path}/test`);
  await until(async () => !(await api.get<WebhookBody>(path)).body.enabled || undefined);

  const { browser } = await browserOf(service, owner);
  const open = async (address: string) => (await browser.open(service.url + address)).text;
  t.regex(
    await open(path),
    /This webhook was disabled automatically: The endpoint responded with 410 Gone\./,
  );
  t.regex(await open(`${base}/webhooks`), /Disabled<.*The endpoint responded with 410 Gone/s);
  t.regex(await open(`${base}/audit`), /disabled webhook http\S+…: The endpoint responded with 410 Gone\./);

  await api.send("PATCH", path, { json: { enabled: true } });
  t.notRegex(await open(path), /was disabled automatically/, "enabling clears the reason");
});
