import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { auditOf, createTeamWithClient, openAs } from "../../harness/clients/dashboard.ts";
import { alertOn, isMarked, openSection, typedIn } from "../../harness/clients/pages.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type NewWebhookBody,
  redacted,
  uniqueUrl,
  type WebhookBody,
} from "../../harness/webhooks.ts";

const service = await startTestService();

const URL_OF = "https://hooks.example.com/in";
const EVENTS = ["link.created"];
type Shown = WebhookBody & { disabled_reason: string | null };

/** Creates a team with functions that manage its webhooks as the owner, with requests and in a browser. */
async function withWebhooks() {
  const section = await openSection<Shown>(service, "webhooks");
  const { api, path } = section;
  const send = (fields: object = {}) =>
    api.send<NewWebhookBody & Shown>("POST", path, { json: { url: URL_OF, events: EVENTS, ...fields } });
  return { ...section, send, create: async (fields: object = {}) => (await send(fields)).body };
}

test("webhooks can only be viewed and deleted on the Free plan", async (t) => {
  const { organization, api, path, create, open } = await withWebhooks();
  const { id } = await create();
  await service.storage.organizations.setPlan(organization.id, "free", OPERATOR);
  for (const [method, address, json] of [
    ["POST", "", { url: URL_OF, events: EVENTS }],
    ["PATCH", `/${id}`, { enabled: false }],
    ["POST", `/${id}/rotate-secret`, {}],
    ["POST", `/${id}/test`, {}],
    ["POST", `/${id}/deliveries/evt_1/resend`, {}],
    ["POST", `/${id}/deliveries/resend-failed`, {}],
    ["GET", `/${id}/deliveries/resend-failed`],
    ["GET", "/new"],
  ] as [method: string, address: string, json?: object][]) {
    const reply = await api.send(method, path + address, json ? { json } : {});
    isProblem(t, reply, { status: 403, code: "plan_required" });
  }
  for (const address of ["", `/${id}`, `/${id}/deliveries`]) {
    const { status, text } = await api.get(path + address);
    t.is(status, 200);
    t.false(text.includes("whsec_"), address);
  }
  t.is((await api.send("DELETE", `${path}/${id}`)).status, 204);
  t.regex((await open()).text, /Webhooks require a paid plan/);
});

test("the limit of 20 webhooks, disabled ones included, is enforced and shown on the page", async (t) => {
  const { create, browser, open } = await withWebhooks();
  const form = await open("/new");
  for (let count = 0; count < 20; count++) await create({ url: uniqueUrl(), enabled: count > 0 });
  const rejected = await browser.press(form, "Create webhook", { url: URL_OF });
  t.is(rejected.status, 409);
  t.regex(alertOn(rejected), /limit of 20 webhooks/);
  const page = await open();
  t.regex(page.text, /20 of 20 webhooks\. Delete one/);
  t.is(page.html.querySelectorAll("tbody tr").length, 20);
  t.false(page.text.includes("Create webhook"));
});

test("a webhook is updated, disabled, enabled and deleted in the browser", async (t) => {
  const { browser, create, open, look, list } = await withWebhooks();
  const { id } = await create({ events: ["link.created", "webhook.test"] });
  const form = await open(`/${id}/edit`);
  t.deepEqual(selectedIn(form), ["link.created", "webhook.test"]);
  const saved = await browser.press(form, "Save webhook", { url: `${URL_OF}?2` });
  t.like(await look(id), { url: `${URL_OF}?2`, events: ["link.created", "webhook.test"] });
  const disabled = await browser.press(saved, "Disable");
  t.regex(disabled.text, /This webhook is disabled/);
  t.false(disabled.text.includes("Send test event"));
  t.false((await look(id)).enabled);
  await browser.press(disabled, "Enable");
  t.true((await look(id)).enabled);
  await browser.press(await open(`/${id}/delete`), "Delete webhook");
  t.deepEqual(await list(), []);
});

test("an invalid webhook is rejected, and a form shown again with the error and what was selected", async (t) => {
  const { browser, send, create, open, look, list } = await withWebhooks();
  const { id, secret: _, ...webhook } = await create();
  const forms = { "Create webhook": await open("/new"), "Save webhook": await open(`/${id}/edit`) };
  for (const [button, form] of Object.entries(forms)) {
    const url = "https://192.168.0.1/in";
    const marked = await browser.press(form, button, { url, events: ["link.deleted", "link.updated"] });
    t.is(marked.status, 422);
    isMarked(t, marked, "url", /public internet/);
    t.is(typedIn(marked, "url"), url);
    t.deepEqual(selectedIn(marked), ["link.updated", "link.deleted"]);
    const again = await browser.press(form, button, { url: URL_OF, events: [] });
    t.is(again.status, 422);
    const group = again.html.querySelector("fieldset");
    t.is(group?.attributes["aria-describedby"], "events-error");
    t.regex(group?.querySelector("#events-error")?.text ?? "", /Select at least one event/);
    t.deepEqual(selectedIn(again), []);
  }
  for (const field of ["secret", "disabled_reason"])
    isProblem(t, await send({ [field]: "mine" }), { status: 422, code: "unknown_field", fields: [field] });
  t.is((await list()).length, 1);
  t.like(await look(id), webhook);
});

const selectedIn = ({ html }: Page) =>
  html.querySelectorAll("[name=events][checked]").map(({ attributes }) => attributes.value);

/** Creates a team with a webhook that its client created over REST. */
async function withWebhook() {
  const team = await createTeamWithClient(service);
  const api = apiAt(service.url, await service.token(team.client));
  const { secret, ...webhook } = await createWebhook(api, URL_OF);
  const path = `${team.base}/webhooks/${webhook.id}`;
  return { ...team, webhook, secret, path, views: () => auditOf(team, "&type=webhook.secret_viewed") };
}

test("owners and admins view the secret of a webhook that another client created", async (t) => {
  const { owner, admin, webhook, secret, path, views } = await withWebhook();
  for (const { api } of [owner, admin]) {
    const reply = await api.send<NewWebhookBody>("POST", `${path}/secret`);
    t.is(reply.status, 200);
    t.like(reply.body, { id: webhook.id, url: webhook.url, secret });
    t.is(reply.headers.get("cache-control"), "no-store");
  }
  const recorded = await views();
  t.is(recorded.length, 2);
  for (const entry of recorded) {
    t.like(entry, { subject: webhook.id, data: { url: redacted(webhook.url) } });
    t.false(JSON.stringify(entry).includes(secret));
  }
});

test("a page never shows a webhook's secret, which can be viewed on the Free plan, too", async (t) => {
  const { owner, base, secret, path } = await withWebhook();
  t.false((await openAs(service, owner, path)).page.text.includes("whsec_"));
  const { api } = owner;
  const { body } = await api.send<NewWebhookBody>("POST", `${path}/rotate-secret`);
  t.not(body.secret, secret);
  t.is((await api.send("PUT", `${base}/plan`, { json: { plan: "free" } })).status, 200);
  const { body: viewed } = await api.send<NewWebhookBody>("POST", `${path}/secret`);
  t.is(viewed.secret, body.secret, "the new one");
});
