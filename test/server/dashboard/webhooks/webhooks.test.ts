import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isMissing, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { isMarked } from "../../../harness/clients/pages.ts";
import type { Page } from "../../../harness/clients/test-browser.ts";
import { startTestService } from "../../../harness/service.ts";
import { type NewWebhookBody, uniqueUrl, type WebhookBody } from "../../../harness/webhooks.ts";

const service = await startTestService();
test.after.always(() => service.close());

const URL_OF = "https://hooks.example.com/in";
type Shown = WebhookBody & { disabled_reason: string | null };
type Health = { next_attempt_at: string | null; recent_deliveries: object };

/** Leaves out what the deliveries of a webhook say about it. */
function withoutHealth({ next_attempt_at, recent_deliveries, ...webhook }: Shown & Health): Shown {
  return webhook;
}

/** Creates a team with functions that manage its webhooks as the owner. */
async function withWebhooks() {
  const team = await createTeam(service);
  const path = `${team.base}/webhooks`;
  const { api } = team.owner;
  return {
    ...team,
    path,
    api,
    create: async (fields: object = {}) =>
      (
        await api.send<NewWebhookBody & Shown>("POST", path, {
          json: { url: URL_OF, events: ["link.created"], ...fields },
        })
      ).body,
    look: async (id: string) => withoutHealth((await api.get<Shown & Health>(`${path}/${id}`)).body),
    list: async () => (await api.get<{ data: (Shown & Health)[] }>(path)).body.data.map(withoutHealth),
    downgrade: () => service.storage.organizations.setPlan(team.organization.id, "free", OPERATOR),
  };
}

async function withBrowser() {
  const team = await withWebhooks();
  const { browser } = await browserOf(service, team.owner);
  return {
    ...team,
    browser,
    open: (address = "") => browser.open(service.url + team.path + address),
  };
}

test("an admin creates, updates, rotates and deletes a webhook, whose secret is shown only when it is new", async (t) => {
  const { admin, path, look, list } = await withWebhooks();
  const { api } = admin;
  const created = await api.send<NewWebhookBody>("POST", path, {
    json: { url: URL_OF, events: ["link.created"] },
  });
  t.is(created.status, 201);
  const { secret, ...webhook } = created.body;
  t.regex(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  t.deepEqual(await list(), [webhook]);
  t.like(webhook, { url: URL_OF, events: ["link.created"], enabled: true, disabled_reason: null });

  const one = `${path}/${webhook.id}`;
  const changed = await api.send<Shown>("PATCH", one, { json: { events: ["link.clicked"], enabled: false } });
  t.like(changed.body, { id: webhook.id, url: URL_OF, events: ["link.clicked"], enabled: false });
  t.deepEqual(await look(webhook.id), changed.body);

  const rotated = await api.send<NewWebhookBody>("POST", `${one}/rotate-secret`);
  t.is(rotated.status, 200);
  t.regex(rotated.body.secret, /^whsec_/);
  t.not(rotated.body.secret, secret);
  const everything = await Promise.all(
    ["", `/${webhook.id}`].map((address) => api.send("GET", path + address)),
  );
  for (const { text } of everything) t.false(text.includes("whsec_"));

  t.is((await api.send("DELETE", one)).status, 204);
  isMissing(t, await api.get(one));
});

const INVALID_INPUT: [name: string, json: object, code: string, fields: string[]][] = [
  ["no URL", { events: ["link.created"] }, "invalid_url", ["url"]],
  ["a private IP address", { url: "https://10.0.0.1/", events: ["link.created"] }, "invalid_url", ["url"]],
  ["plain http", { url: "http://hooks.example.com/", events: ["link.created"] }, "invalid_url", ["url"]],
  ["no event", { url: URL_OF, events: [] }, "invalid_events", ["events"]],
  ["an unknown event", { url: URL_OF, events: ["link.renamed"] }, "invalid_events", ["events.0"]],
  ["a secret", { url: URL_OF, events: ["link.created"], secret: "mine" }, "unknown_field", ["secret"]],
  [
    "a reason",
    { url: URL_OF, events: ["link.created"], disabled_reason: "x" },
    "unknown_field",
    ["disabled_reason"],
  ],
];

for (const [name, json, code, fields] of INVALID_INPUT) {
  test(`a webhook with ${name} is rejected`, async (t) => {
    const { api, path, list } = await withWebhooks();
    isProblem(t, await api.send("POST", path, { json }), { status: 422, code, fields });
    t.deepEqual(await list(), []);
  });
}

test("a webhook of another organization is not found by any route", async (t) => {
  const { base, create, look, stranger, other } = await withWebhooks();
  const { secret: _, ...webhook } = await create();
  const theirs = `/dashboard/organizations/${other.id}/webhooks/${webhook.id}`;
  for (const [method, address, json] of [
    ["GET", ""],
    ["PATCH", "", { enabled: false }],
    ["POST", "", { enabled: false }],
    ["DELETE", ""],
    ["GET", "/edit"],
    ["GET", "/delete"],
    ["POST", "/delete"],
    ["GET", "/rotate-secret"],
    ["POST", "/rotate-secret"],
    ["POST", "/secret"],
    ["POST", "/test"],
    ["GET", "/deliveries"],
    ["GET", "/deliveries/evt_1"],
    ["POST", "/deliveries/evt_1/resend"],
    ["GET", "/deliveries/resend-failed"],
    ["POST", "/deliveries/resend-failed"],
  ] as [method: string, address: string, json?: object][]) {
    const reply = await stranger.api.send(method, theirs + address, json ? { json } : {});
    t.is(reply.status, 404, `${method} ${address}`);
    isMissing(t, reply);
  }
  isMissing(t, await stranger.api.get(`${base}/webhooks/${webhook.id}`));
  t.deepEqual(await look(webhook.id), webhook as Shown);
});

test("webhooks can only be viewed and deleted on the Free plan", async (t) => {
  const { api, path, create, downgrade } = await withWebhooks();
  const { id } = await create();
  await downgrade();
  for (const [method, address, json] of [
    ["POST", "", { url: URL_OF, events: ["link.created"] }],
    ["PATCH", `/${id}`, { enabled: false }],
    ["POST", `/${id}`, { enabled: false }],
    ["POST", `/${id}/rotate-secret`, {}],
    ["POST", `/${id}/test`, {}],
    ["POST", `/${id}/deliveries/evt_1/resend`, {}],
    ["POST", `/${id}/deliveries/resend-failed`, {}],
    ["GET", `/${id}/deliveries/resend-failed`],
    ["GET", "/new"],
    ["GET", `/${id}/edit`],
    ["GET", `/${id}/rotate-secret`],
  ] as [method: string, address: string, json?: object][]) {
    const reply = await api.send(method, path + address, json ? { json } : {});
    t.is(reply.status, 403, `${method} ${address}`);
    isProblem(t, reply, { status: 403, code: "plan_required" });
  }
  t.is((await api.get(path)).status, 200);
  t.is((await api.get(`${path}/${id}/deliveries`)).status, 200);
  t.is((await api.send("DELETE", `${path}/${id}`)).status, 204);
});

test("the limit of 20 webhooks is enforced and shown on the page", async (t) => {
  const { api, path, create, list, browser, open } = await withBrowser();
  const form = await open("/new");
  for (let count = 0; count < 20; count++) await create({ url: uniqueUrl() });
  const json = { url: URL_OF, events: ["link.created"] };
  isProblem(t, await api.send("POST", path, { json }), { status: 409, code: "webhook_limit" });
  const rejected = await browser.press(form, "Create webhook", { url: URL_OF });
  t.is(rejected.status, 409);
  t.regex(rejected.html.querySelector("[role=alert]")?.text ?? "", /limit of 20 webhooks/);
  t.is((await list()).length, 20);
  const page = await open();
  t.regex(page.text, /20 of 20 webhooks\. Delete one/);
  t.is(page.html.querySelectorAll("tbody tr").length, 20);
  t.false(page.text.includes("Create webhook"));
});

test("the form leads to a page that shows the signing secret once", async (t) => {
  const { browser, open, list } = await withBrowser();
  t.regex((await open()).text, /No webhooks yet/);
  const created = await browser.press(await open("/new"), "Create webhook", {
    url: URL_OF,
    events: ["link.created", "link.clicked"],
  });
  t.is(created.status, 200);
  t.is(created.headers.get("cache-control"), "no-store");
  const [webhook] = await list();
  t.like(webhook, { url: URL_OF, events: ["link.created", "link.clicked"] });
  const secret = secretIn(created);
  const rotated = await browser.press(await open(`/${webhook?.id}/rotate-secret`), "Rotate secret");
  t.not(secretIn(rotated), secret);
  t.regex(rotated.text, /for 24 hours/);
  for (const address of ["", `/${webhook?.id}`, `/${webhook?.id}/edit`, `/${webhook?.id}/rotate-secret`]) {
    t.false((await open(address)).text.includes("whsec_"), address);
  }
});

test("a webhook is updated, disabled, enabled and deleted in the browser", async (t) => {
  const { browser, create, open, look, list } = await withBrowser();
  const { id } = await create({ events: ["link.created", "webhook.test"] });
  const form = await open(`/${id}/edit`);
  t.deepEqual(
    form.html.querySelectorAll("input[checked]").map((box) => box.attributes.value),
    ["link.created", "webhook.test"],
  );
  const saved = await browser.press(form, "Save webhook", { url: `${URL_OF}?2` });
  t.regex(saved.text, /Webhook saved/);
  t.like(await look(id), { url: `${URL_OF}?2`, events: ["link.created", "webhook.test"] });
  const disabled = await browser.press(saved, "Disable");
  t.regex(disabled.text, /Webhook disabled/);
  t.regex(disabled.text, /This webhook is disabled/);
  t.false(disabled.text.includes("Send test event"));
  t.false((await look(id)).enabled);
  const enabled = await browser.press(disabled, "Enable");
  t.regex(enabled.text, /Webhook enabled/);
  t.true((await look(id)).enabled);
  const deleted = await browser.press(await open(`/${id}/delete`), "Delete webhook");
  t.regex(deleted.text, /Webhook deleted/);
  t.deepEqual(await list(), []);
});

const INVALID_FORMS: [
  name: string,
  fields: Record<string, string | string[]>,
  field: string,
  message: RegExp,
][] = [
  ["no URL", { url: "" }, "url", /absolute URL/],
  ["a private IP address", { url: "https://192.168.0.1/in" }, "url", /public internet/],
  ["a private hostname", { url: "https://printer.local/" }, "url", /public internet/],
  ["another port", { url: "https://hooks.example.com:8080/" }, "url", /443 or 8443/],
];

for (const [name, fields, field, message] of INVALID_FORMS) {
  test(`a form with ${name} is shown again with the error next to the field`, async (t) => {
    const { browser, create, open, look, list } = await withBrowser();
    const { id, secret: _, ...webhook } = await create();
    for (const [address, button] of [
      ["/new", "Create webhook"],
      [`/${id}/edit`, "Save webhook"],
    ] as const) {
      const values = { events: ["link.deleted", "link.updated"], ...fields };
      const again = await browser.press(await open(address), button, values);
      t.is(again.status, 422);
      isMarked(t, again, field, message);
      t.is(again.html.querySelector("[name=url]")?.attributes.value, fields.url as string);
      t.deepEqual(selectedIn(again), ["link.updated", "link.deleted"]);
    }
    t.is((await list()).length, 1);
    t.deepEqual(await look(id), { id, ...webhook } as Shown);
  });
}

test("a form without events is shown again with the error next to the field", async (t) => {
  const { browser, create, open, list } = await withBrowser();
  const { id } = await create();
  for (const [address, button] of [
    ["/new", "Create webhook"],
    [`/${id}/edit`, "Save webhook"],
  ] as const) {
    const again = await browser.press(await open(address), button, { url: URL_OF, events: [] });
    t.is(again.status, 422);
    const group = again.html.querySelector("fieldset");
    t.is(group?.attributes["aria-describedby"], "events-error");
    t.regex(group?.querySelector("#events-error")?.text ?? "", /Select at least one event/);
    t.deepEqual(selectedIn(again), []);
  }
  t.deepEqual(
    (await list()).map(({ events }) => events),
    [["link.created"]],
  );
});

test("the pages say that webhooks require a paid plan and that existing ones are paused", async (t) => {
  const { open, create, downgrade } = await withBrowser();
  const { id } = await create();
  await downgrade();
  t.regex((await open()).text, /Webhooks are paused on the Free plan/);
  const page = await open(`/${id}`);
  t.regex(page.text, /Webhooks are paused on the Free plan/);
  const forms = page.html.querySelectorAll("main form");
  t.deepEqual(
    forms.map((form) => form.text.trim()),
    ["Show secret"],
  );
  const free = await createTeam(service, "free");
  const { browser } = await browserOf(service, free.owner);
  t.regex((await browser.open(`${service.url}${free.base}/webhooks`)).text, /Webhooks require a paid plan/);
});

test("every form of a webhook is rejected without a valid CSRF token", async (t) => {
  const { browser, create, path, look, list } = await withBrowser();
  const { id, secret: _, ...webhook } = await create();
  for (const [address, fields] of [
    ["", { url: URL_OF, events: "link.created" }],
    [`/${id}`, { enabled: "false" }],
    [`/${id}/rotate-secret`, {}],
    [`/${id}/test`, {}],
    [`/${id}/delete`, {}],
  ] as const) {
    const body = new URLSearchParams({ ...fields, csrf: "a".repeat(43) } as Record<string, string>);
    const headers = { origin: service.url };
    const rejected = await browser.open(service.url + path + address, { method: "POST", body, headers });
    t.is(rejected.status, 403, address);
  }
  t.deepEqual(await look(id), { id, ...webhook } as Shown);
  t.is((await list()).length, 1);
});

const secretIn = ({ html }: Page) =>
  html
    .querySelectorAll(".copyable code")
    .map(({ text }) => text)
    .find((text) => text.startsWith("whsec_")) ?? "none";

const selectedIn = ({ html }: Page) =>
  html.querySelectorAll("[name=events][checked]").map(({ attributes }) => attributes.value);
