import type { ServerResponse } from "node:http";
import test from "ava";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import type { Page } from "../../../harness/clients/test-browser.ts";
import { createTestStorage } from "../../../harness/database/storage.ts";
import { startReceiver } from "../../../harness/receiver.ts";
import { startTestService } from "../../../harness/service.ts";
import {
  type DeliveryPage,
  type NewWebhookBody,
  until,
  type WebhookBody,
  waitUntilVerified,
} from "../../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const { database, url, encryptionKey, close } = await createTestStorage();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: encryptionKey.toString("base64url"),
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
});
test.after.always(async () => {
  await Promise.all([service.close(), receiver.close()]);
  await close();
});

type Health = WebhookBody & {
  last_success_at: string | null;
  failing_since: string | null;
  next_attempt_at: string | null;
  recent_deliveries: { succeeded: number; failed: number; pending: number };
};

async function withTeam() {
  const team = await createTeam(service);
  const { api } = team.owner;
  const { browser } = await browserOf(service, team.owner);
  const path = `${team.base}/webhooks`;
  return {
    ...team,
    api,
    path,
    browser,
    list: async () => (await api.get<{ data: Health[] }>(path)).body.data,
    async create(at: string, isVerified = true) {
      const json = { url: receiver.url(at), events: ["webhook.test"] };
      const { body } = await api.send<NewWebhookBody>("POST", path, { json });
      if (isVerified) await waitUntilVerified(api, `${path}/${body.id}`);
      return body;
    },
    /** Sends a test event, and waits until it has been attempted. */
    async attempt(id: string) {
      const { body: sent } = await api.send<{ id: string }>("POST", `${path}/${id}/test`);
      await until(async () => {
        const { data } = (await api.get<DeliveryPage>(`${path}/${id}/deliveries`)).body;
        return data.find((one) => one.id === sent.id && one.attempts.length > 0);
      });
    },
  };
}

const factOf = ({ html }: Page, name: string) => {
  const term = html.querySelectorAll("dt").find(({ text }) => text === name);
  return term?.nextElementSibling?.text.replaceAll(/\s+/g, " ");
};

test("a webhook has its last success, and how the deliveries of the last day went", async (t) => {
  const { api, path, browser, create, attempt, list } = await withTeam();
  const webhook = await create("/healthy");
  await attempt(webhook.id);
  const [health] = await list();
  t.like(health, {
    id: webhook.id,
    failing_since: null,
    next_attempt_at: null,
    recent_deliveries: { succeeded: 2, failed: 0, pending: 0 },
  });
  const sinceLast = Date.now() - Date.parse(health?.last_success_at ?? "");
  t.true(sinceLast >= 0 && sinceLast < 60_000);
  t.deepEqual((await api.get<Health>(`${path}/${webhook.id}`)).body, health);
  const page = await browser.open(`${service.url}${path}/${webhook.id}`);
  t.is(factOf(page, "Last 24 hours"), "100% of 2 delivered");
  t.regex(factOf(page, "Last success") ?? "", /UTC$/);
});

test("a failing webhook has the time of the next attempt, and keeps that of its last success", async (t) => {
  const { base, member, path, browser, create, attempt, list } = await withTeam();
  const webhook = await create("/failing");
  const [healthy] = await list();
  receiver.respond("/failing", (response) => response.writeHead(500).end());
  await attempt(webhook.id);
  const [failing] = await list();
  t.like(failing, {
    last_success_at: healthy?.last_success_at,
    recent_deliveries: { succeeded: 1, failed: 0, pending: 1 },
  });
  t.truthy(failing?.failing_since);
  const wait = Date.parse(failing?.next_attempt_at ?? "") - Date.parse(failing?.failing_since ?? "");
  t.true(wait > 0 && wait < 30_000, `${wait}`);
  const row = (await browser.open(service.url + path)).html.querySelector("tbody tr");
  t.regex(
    row?.text.replaceAll(/\s+/g, " ") ?? "",
    /Failing since .* next attempt .*50% of 2 delivered 1 waiting/,
  );
  const linkOf = async (page: Promise<Page>) =>
    (await page).html.querySelector(".sections a[href$=/webhooks]")?.text;
  t.is(await linkOf(browser.open(service.url + base)), "Webhooks 1 failing");
  const settings = await browser.open(`${service.url}${base}/settings`);
  const rejected = browser.press(settings, "Rename organization", { name: " " });
  t.is((await rejected).status, 422);
  t.is(await linkOf(rejected), "Webhooks 1 failing", "also on a page that answers a form");
  t.is(await linkOf(browserOf(service, member).then(({ page }) => page)), undefined);
  receiver.respond("/failing", (response) => response.writeHead(410).end());
  await attempt(webhook.id);
  // The next attempt of the first one may have been due before this one.
  const { succeeded, failed = 0, pending = 0 } = (await list())[0]?.recent_deliveries ?? {};
  t.deepEqual([succeeded, failed + pending], [1, 2]);
  t.true(failed >= 1);
});

test("the next attempt of a paused webhook is at the end of the pause, which its page explains", async (t) => {
  const { api, path, browser, create, attempt, list } = await withTeam();
  const { id } = await create("/paused");
  receiver.respond("/paused", (response) => response.writeHead(500).end());
  await attempt(id);
  const until = Date.now() + 8 * 60_000;
  const row = () => database.knex("webhooks").where({ id });
  await row().update({ blocked_until: until, failures: 11 });
  const expected = new Date(until).toISOString();
  t.is((await list())[0]?.next_attempt_at, expected);
  const address = `${service.url}${path}/${id}`;
  const open = async () => (await browser.open(address)).html;
  const page = await open();
  const alertOf = (html: typeof page) => html.querySelector(".alert.bad")?.text.replaceAll(/\s+/g, " ") ?? "";
  t.regex(
    alertOf(page),
    / Your endpoint responded with 500\. Paused until .* UTC after 11 failures in a row\. A test event or Send now ends the pause\.$/,
  );
  t.deepEqual(
    page
      .querySelectorAll(".alert.bad time, [data-head='Next attempt'] time")
      .map((time) => time.attributes.datetime),
    [(await list())[0]?.failing_since ?? "", expected, expected],
  );
  await row().update({ blocked_until: 1, paused_until: until });
  t.is((await list())[0]?.next_attempt_at, expected);
  t.regex(alertOf(await open()), / Paused until .* UTC, as your endpoint asked for with Retry-After\.$/);
  await row().update({ blocked_until: until + 1, paused_until: null });
  const held = Promise.withResolvers<ServerResponse>();
  receiver.respond("/paused", held.resolve);
  await api.send("POST", `${path}/${id}/test`);
  t.notRegex(alertOf(await open()), /Paused/, "a test event ends the pause");
  (await held.promise).writeHead(204).end();
});

test("a due attempt is now, and the share of delivered events is rounded", async (t) => {
  const { api, path, browser, create, attempt } = await withTeam();
  const { id } = await create("/due");
  for (let delivered = 0; delivered < 3; delivered++) await attempt(id);
  receiver.respond("/due", (response) => response.writeHead(500).end());
  await attempt(id);
  await attempt(id);
  const held = Promise.withResolvers<ServerResponse>();
  receiver.respond("/due", held.resolve);
  const { data } = (await api.get<DeliveryPage>(`${path}/${id}/deliveries?status=pending`)).body;
  for (const delivery of data) await api.send("POST", `${path}/${id}/deliveries/${delivery.id}/resend`);
  // A failing endpoint gets one request at a time, so the other delivery is due.
  const response = await held.promise;
  const page = await browser.open(`${service.url}${path}/${id}`);
  t.regex(page.html.querySelector(".alert.bad")?.text ?? "", /Next attempt: now\.$/);
  t.is(factOf(page, "Last 24 hours"), "67% of 6 delivered 2 waiting");
  response.writeHead(204).end();
});

test("a webhook that was never verified has no success", async (t) => {
  const { path, browser, create, list } = await withTeam();
  receiver.exposeVerification("/never");
  receiver.respond("/never", (response) => response.writeHead(500).end());
  const webhook = await create("/never", false);
  await until(async () => ((await list())[0]?.recent_deliveries.pending ? true : undefined));
  t.is((await list())[0]?.last_success_at, null);
  t.is(factOf(await browser.open(`${service.url}${path}/${webhook.id}`), "Last success"), "never");
});

test("a new URL has no success yet", async (t) => {
  const { api, path, create, list } = await withTeam();
  const webhook = await create("/before");
  t.truthy((await list())[0]?.last_success_at);
  receiver.exposeVerification("/after");
  receiver.respond("/after", (response) => response.writeHead(500).end());
  await api.send("PATCH", `${path}/${webhook.id}`, { json: { events: ["link.created"] } });
  t.truthy((await list())[0]?.last_success_at, "other changes keep it");
  await api.send("PATCH", `${path}/${webhook.id}`, { json: { url: receiver.url("/after") } });
  t.is((await list())[0]?.last_success_at, null);
});

test("only failing webhooks of the organization are counted", async (t) => {
  const [one, other] = [await withTeam(), await withTeam()];
  const countOf = (team: typeof one) => service.storage.webhooks.countFailing(team.organization.id);
  const webhook = await one.create("/counted");
  await one.create("/fine");
  t.is(await countOf(one), 0);
  receiver.respond("/counted", (response) => response.writeHead(500).end());
  await one.attempt(webhook.id);
  t.is(await countOf(one), 1);
  t.is(await countOf(other), 0);
  await one.api.send("PATCH", `${one.path}/${webhook.id}`, { json: { enabled: false } });
  t.is(await countOf(one), 0, "a disabled one doesn't fail");
});
