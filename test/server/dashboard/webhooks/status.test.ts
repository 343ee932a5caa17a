import type { ServerResponse } from "node:http";
import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { apiAt } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import type { Page } from "../../../harness/clients/test-browser.ts";
import { startReceiver } from "../../../harness/receiver.ts";
import { startTestService } from "../../../harness/service.ts";
import {
  createWebhook,
  type DeliveryPage,
  type NewWebhookBody,
  until,
  type WebhookBody,
  waitForDelivery,
  waitUntilVerified,
} from "../../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
test.after.always(() => Promise.all([service.close(), receiver.close()]));

type Shown = WebhookBody & { status: string; failing_since: string | null; disabled_reason: string | null };

/** Creates a webhook whose endpoint responds with a status, and signs its owner in in a browser. */
async function withWebhook(at: string, status: number) {
  const team = await createTeam(service);
  const { api } = team.owner;
  const { browser } = await browserOf(service, team.owner);
  const answer = (code: number) => receiver.respond(at, (response) => response.writeHead(code).end());
  answer(status);
  const json = { url: receiver.url(at), events: ["webhook.test"] };
  const { body } = await api.send<NewWebhookBody>("POST", `${team.base}/webhooks`, { json });
  const path = `${team.base}/webhooks/${body.id}`;
  await waitUntilVerified(api, path);
  const page = (address: string) => browser.open(service.url + address);
  return {
    ...team,
    api,
    path,
    answer,
    look: async () => (await api.get<Shown>(path)).body,
    /** Sends a test event and waits for its first attempt. */
    attempt: async () => {
      const { body: sent } = await api.send<{ id: string }>("POST", `${path}/test`);
      await until(async () => {
        const { data } = (await api.get<DeliveryPage>(`${path}/deliveries`)).body;
        return data.find(({ id, attempts }) => id === sent.id && attempts.length > 0);
      });
    },
    list: () => page(`${team.base}/webhooks`),
    detail: () => page(path),
  };
}

const badgeIn = ({ html }: Page, where: string) => {
  const badge = html.querySelector(`${where} .badge`);
  return { text: badge?.text, kind: badge?.classNames.split(" ")[1] };
};
const DATE = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });
const inList = "[data-head=Status]";
const inDetail = ".panel [data-fact=status]";
const inLog = "table tbody tr";
const textOf = ({ html }: Page, where: string) => html.querySelector(where)?.text.replace(/\s+/g, " ") ?? "";

test("a webhook whose deliveries succeed is active", async (t) => {
  const { attempt, look, list, detail } = await withWebhook("/active", 204);
  for (const when of ["before its first delivery", "after it"]) {
    t.like(await look(), { status: "active", failing_since: null, disabled_reason: null });
    t.deepEqual(badgeIn(await list(), inList), { text: "Active", kind: "good" }, when);
    t.deepEqual(badgeIn(await detail(), inDetail), { text: "Active", kind: "good" }, when);
    await attempt();
  }
  t.deepEqual(badgeIn(await detail(), inLog), { text: "Delivered", kind: "good" });
});

test("an unverified webhook waits for a test event, which can be sent from its page", async (t) => {
  const { owner, base } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  receiver.exposeVerification("/waiting");
  receiver.respond("/waiting", (response) => response.writeHead(500).end());
  const json = { url: receiver.url("/waiting"), events: ["link.created"] };
  const { body } = await owner.api.send<NewWebhookBody>("POST", `${base}/webhooks`, { json });
  const path = `${base}/webhooks/${body.id}`;
  const deliveries = async () => (await owner.api.get<DeliveryPage>(`${path}/deliveries`)).body.data;
  await until(async () => (await deliveries())[0]?.attempts[0]);
  const { body: shown } = await owner.api.get<Shown>(path);
  t.like(shown, { status: "unverified", verified: false, failing_since: null });
  await owner.api.send("POST", `${base}/links`, { json: { url: "https://example.com/" } });
  await until(async () => (await deliveries())[1]);
  t.deepEqual(badgeIn(await browser.open(`${service.url}${base}/webhooks`), inList), {
    text: "Unverified",
    kind: "warn",
  });
  const page = await browser.open(service.url + path);
  t.deepEqual(badgeIn(page, inDetail), { text: "Unverified", kind: "warn" });
  t.true(textOf(page, inDetail).includes("the test event failed"));
  t.regex(
    textOf(page, "main .alert.bad"),
    /^Not verified: the last test got 500\. Fix it, then send another\. Other events are sent once your endpoint responds with 2xx\. Next attempt: [A-Z][a-z]{2} /,
  );
  t.regex(
    textOf(page, "tbody tr:nth-child(1)"),
    /^link\.created at \S+ \/\w+Waiting.*once the endpoint is verified$/,
  );
  t.regex(textOf(page, "tbody tr:nth-child(2)"), /^webhook\.test at \S+ ?Retrying ?500/);
  t.false(page.text.includes("Resend"));
  const next = Promise.withResolvers<ServerResponse>();
  receiver.respond("/waiting", next.resolve);
  const waiting = await browser.press(page, "Send test event");
  t.regex(
    textOf(waiting, "main .alert.bad"),
    /^Not verified: the last test got 500\. Fix it, then send another\. /,
  );
  (await next.promise).writeHead(204).end();
  await waitUntilVerified(owner.api, path);
  t.deepEqual(badgeIn(await browser.open(service.url + path), inDetail), { text: "Active", kind: "good" });
});

test("a failing webhook shows since when it fails and when the next attempt is due", async (t) => {
  const { attempt, answer, look, list, detail } = await withWebhook("/failing", 500);
  const before = Date.now();
  await attempt();
  const { status, enabled, failing_since } = await look();
  t.is(status, "failing");
  t.true(enabled);
  t.true(Date.parse(failing_since ?? "") >= before && Date.parse(failing_since ?? "") <= Date.now());
  const since = `${DATE.format(Date.parse(failing_since ?? ""))}, ${failing_since?.slice(11, 16)} UTC`;

  const inTable = await list();
  t.deepEqual(badgeIn(inTable, inList), { text: "Failing", kind: "bad" });
  t.true(textOf(inTable, inList).includes(`since ${since}`), textOf(inTable, inList));
  const page = await detail();
  t.deepEqual(badgeIn(page, inDetail), { text: "Failing", kind: "bad" });
  const alert = textOf(page, ".alert.bad");
  t.true(alert.startsWith(`Deliveries to this webhook have been failing since ${since}.`), alert);
  t.regex(alert, /Next attempt: [A-Z][a-z]{2} \d{1,2}, \d{4}, \d\d:\d\d UTC\./);
  t.is(page.html.querySelectorAll(".alert.bad time")[0]?.attributes.datetime, failing_since ?? "");
  t.deepEqual(badgeIn(page, inLog), { text: "Retrying", kind: "warn" });
  t.regex(
    textOf(page, inLog),
    /^webhook\.test .*500.*(?:[A-Z][a-z]{2} \d{1,2}, \d{4}, \d\d:\d\d:\d\d UTC){2}Send now /,
  );

  answer(204);
  await attempt();
  t.like(await look(), { status: "active", failing_since: null });
  t.deepEqual(badgeIn(await list(), inList), { text: "Active", kind: "good" });
  t.is((await detail()).html.querySelector(".alert.bad"), null);
});

test("a disabled webhook shows the reason if it was disabled automatically", async (t) => {
  const { api, path, attempt, look, list, detail } = await withWebhook("/disabled", 410);
  await api.send("PATCH", path, { json: { enabled: false } });
  t.like(await look(), { status: "disabled", disabled_reason: null });
  t.deepEqual(badgeIn(await list(), inList), { text: "Disabled", kind: "neutral" });
  t.deepEqual(badgeIn(await detail(), inDetail), { text: "Disabled", kind: "neutral" });

  await api.send("PATCH", path, { json: { enabled: true } });
  await attempt();
  const reason = "The endpoint responded with 410 Gone.";
  t.like(await look(), { status: "disabled", disabled_reason: reason });
  const inTable = await list();
  t.deepEqual(badgeIn(inTable, inList), { text: "Disabled", kind: "neutral" });
  t.true(textOf(inTable, inList).includes(reason));
  const page = await detail();
  t.true(textOf(page, inDetail).includes(reason));
  t.deepEqual(badgeIn(page, inLog), { text: "Failed", kind: "bad" });
});

test("a webhook is paused on the Free plan, even if it was failing", async (t) => {
  const { organization, attempt, look, list, detail } = await withWebhook("/paused", 500);
  await attempt();
  await service.storage.organizations.setPlan(organization.id, "free", OPERATOR);
  t.is((await look()).status, "paused");
  t.deepEqual(badgeIn(await list(), inList), { text: "Paused", kind: "warn" });
  const page = await detail();
  t.deepEqual(badgeIn(page, inDetail), { text: "Paused", kind: "warn" });
  t.is(page.html.querySelector(".alert.bad"), null);
  t.deepEqual(badgeIn(page, inLog), { text: "Retrying", kind: "warn" });
  t.is(textOf(page, `${inLog} [data-head="Next attempt"]`).trim(), "", "nothing is sent");
});

test("the REST API returns the documented fields of a failing webhook and no others", async (t) => {
  const organization = await service.createOrganization();
  const api = apiAt(service.url, await service.token(organization));
  receiver.respond("/api", (response) => response.writeHead(500).end());
  const { id } = await createWebhook(api, receiver.url("/api"), ["webhook.test"]);
  t.is((await api.send("POST", `/v1/webhooks/${id}/test`)).status, 202);
  await waitForDelivery(api, { id }, ({ attempts }) => attempts.length > 0);
  const { body: shown } = await api.get<WebhookBody>(`/v1/webhooks/${id}`);
  t.deepEqual(Object.keys(shown), [
    "id",
    "url",
    "events",
    "enabled",
    "verified",
    "created_at",
    "updated_at",
    "created_by",
    "created_via",
  ]);
});

test("the page of an unverified webhook says why its endpoint can't be reached", async (t) => {
  const { owner, base } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const json = { url: "https://hooks.example.invalid/in", events: ["link.created"] };
  const { body } = await owner.api.send<NewWebhookBody>("POST", `${base}/webhooks`, { json });
  const path = `${base}/webhooks/${body.id}`;
  const first = async () => (await owner.api.get<DeliveryPage>(`${path}/deliveries`)).body.data[0];
  await until(async () => (await first())?.attempts[0]);
  const page = await browser.open(service.url + path);
  t.regex(
    textOf(page, "main .alert.bad"),
    /^The test event couldn’t be delivered\. The hostname does not exist\. /,
  );
});

test("the headings of two webhooks on one host differ, and the titles in the browser's history don't contain the path", async (t) => {
  const { owner, base } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const headings = [];
  for (const url of [
    "https://hooks.northwind.invalid/one?key=1",
    "https://hooks.northwind.invalid/two",
    "https://hooks.northwind.invalid",
  ]) {
    const json = { url, events: ["link.created"] };
    const { body } = await owner.api.send<NewWebhookBody>("POST", `${base}/webhooks`, { json });
    const { html } = await browser.open(`${service.url}${base}/webhooks/${body.id}`);
    headings.push(html.querySelector("h1")?.text);
    t.is(html.querySelector("title")?.text, "hooks.northwind.invalid · Team · linkgate");
  }
  t.deepEqual(headings, [
    "hooks.northwind.invalid/one?key=1",
    "hooks.northwind.invalid/two",
    "hooks.northwind.invalid",
  ]);
});
