import test from "ava";
import { OPERATOR } from "../../../resources/events.ts";
import { isMissing, isProblem } from "../../harness/api.ts";
import { browserOf, createTeam } from "../../harness/dashboard.ts";
import { isMarked } from "../../harness/pages.ts";
import type { Page } from "../../harness/person.ts";
import { startTestService } from "../../harness/service.ts";
import type { NewWebhookBody, WebhookBody, WebhookPage } from "../../harness/webhooks.ts";

const service = await startTestService();
test.after.always(() => service.close());

const URL_OF = "https://hooks.example.com/in";
type Shown = WebhookBody & { disabled_reason: string | null };

/** A team, and the webhooks of its organization as an owner sees them. */
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
    look: async (id: string) => (await api.get<Shown>(`${path}/${id}`)).body,
    list: async () => (await api.get<WebhookPage>(path)).body.data,
    downgrade: () => service.storage.organizations.setPlan(team.organization.id, "free", OPERATOR),
  };
}

async function withBrowser() {
  const team = await withWebhooks();
  const { person } = await browserOf(service, team.owner);
  return { ...team, person, open: (address = "") => person.open(service.url + team.path + address) };
}

test("sec 128: a webhook is made, changed, given a new secret and deleted; its secret is shown when it is new", async (t) => {
  const { admin, path, look, list } = await withWebhooks();
  const { api } = admin;
  const made = await api.send<NewWebhookBody>("POST", path, {
    json: { url: URL_OF, events: ["link.created"] },
  });
  t.is(made.status, 201);
  const { secret, ...webhook } = made.body;
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

const WRONG_INPUT: [what: string, json: object, code: string, fields: string[]][] = [
  ["no address", { events: ["link.created"] }, "invalid_url", ["url"]],
  ["a private address", { url: "https://10.0.0.1/", events: ["link.created"] }, "invalid_url", ["url"]],
  ["plain http", { url: "http://hooks.example.com/", events: ["link.created"] }, "invalid_url", ["url"]],
  ["no event", { url: URL_OF, events: [] }, "invalid_events", ["events"]],
  ["an unknown event", { url: URL_OF, events: ["link.made"] }, "invalid_events", ["events.0"]],
  ["a secret", { url: URL_OF, events: ["link.created"], secret: "mine" }, "unknown_field", ["secret"]],
  [
    "a reason",
    { url: URL_OF, events: ["link.created"], disabled_reason: "x" },
    "unknown_field",
    ["disabled_reason"],
  ],
];

for (const [what, json, code, fields] of WRONG_INPUT) {
  test(`sec 92, 131: a webhook with ${what} is refused, and none is made`, async (t) => {
    const { api, path, list } = await withWebhooks();
    isProblem(t, await api.send("POST", path, { json }), { status: 422, code, fields });
    t.deepEqual(await list(), []);
  });
}

test("sec 91: a webhook of another organization is not there, whatever is asked for", async (t) => {
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
    ["POST", "/test"],
    ["GET", "/deliveries"],
    ["POST", "/deliveries/evt_1/resend"],
  ] as [method: string, address: string, json?: object][]) {
    isMissing(t, await stranger.api.send(method, theirs + address, json ? { json } : {}));
  }
  isMissing(t, await stranger.api.get(`${base}/webhooks/${webhook.id}`));
  t.deepEqual(await look(webhook.id), webhook as Shown);
});

test("sec 94: on the Free plan webhooks are looked at and deleted, and nothing else", async (t) => {
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
    ["GET", "/new"],
    ["GET", `/${id}/edit`],
    ["GET", `/${id}/rotate-secret`],
  ] as [method: string, address: string, json?: object][]) {
    const reply = await api.send(method, path + address, json ? { json } : {});
    isProblem(t, reply, { status: 403, code: "plan_required" });
  }
  t.is((await api.get(path)).status, 200);
  t.is((await api.get(`${path}/${id}/deliveries`)).status, 200);
  t.is((await api.send("DELETE", `${path}/${id}`)).status, 204);
});

test("sec 95: there are at most 20 webhooks, and the page says so", async (t) => {
  const { api, path, create, list, person, open } = await withBrowser();
  const form = await open("/new");
  for (let count = 0; count < 20; count++) await create();
  const json = { url: URL_OF, events: ["link.created"] };
  isProblem(t, await api.send("POST", path, { json }), { status: 409, code: "webhook_limit" });
  const refused = await person.press(form, "Create webhook", { url: URL_OF });
  t.is(refused.status, 409);
  t.regex(refused.html.querySelector("[role=alert]")?.text ?? "", /at most 20 webhooks/);
  t.is((await list()).length, 20);
  const page = await open();
  t.regex(page.text, /20 of 20 webhooks\. Delete one/);
  t.is(page.html.querySelectorAll("tbody tr").length, 20);
  t.false(page.text.includes("New webhook"));
});

test("sec 128: in the browser the secret is shown once, on a page after the form", async (t) => {
  const { person, open, list } = await withBrowser();
  t.regex((await open()).text, /No webhooks yet/);
  const made = await person.press(await open("/new"), "Create webhook", {
    url: URL_OF,
    events: ["link.created", "link.clicked"],
  });
  t.is(made.status, 200);
  t.is(made.headers.get("cache-control"), "no-store");
  const [webhook] = await list();
  t.like(webhook, { url: URL_OF, events: ["link.created", "link.clicked"] });
  const secret = secretIn(made);
  const rotated = await person.press(await open(`/${webhook?.id}/rotate-secret`), "Make a new secret");
  t.not(secretIn(rotated), secret);
  t.regex(rotated.text, /for 24 hours/);
  for (const address of ["", `/${webhook?.id}`, `/${webhook?.id}/edit`, `/${webhook?.id}/rotate-secret`]) {
    t.false((await open(address)).text.includes("whsec_"), address);
  }
});

test("a webhook is edited, disabled, enabled and deleted in the browser", async (t) => {
  const { person, create, open, look, list } = await withBrowser();
  const { id } = await create({ events: ["link.created", "webhook.test"] });
  const form = await open(`/${id}/edit`);
  t.deepEqual(
    form.html.querySelectorAll("input[checked]").map((box) => box.attributes.value),
    ["link.created", "webhook.test"],
  );
  const saved = await person.press(form, "Save webhook", { url: `${URL_OF}?2` });
  t.regex(saved.text, /The webhook was saved/);
  t.like(await look(id), { url: `${URL_OF}?2`, events: ["link.created", "webhook.test"] });
  const disabled = await person.press(saved, "Disable");
  t.regex(disabled.text, /The webhook is told nothing more/);
  t.regex(disabled.text, /This webhook is disabled/);
  t.false(disabled.text.includes("Send test event"));
  t.false((await look(id)).enabled);
  const enabled = await person.press(disabled, "Enable");
  t.regex(enabled.text, /told of things again/);
  t.true((await look(id)).enabled);
  const deleted = await person.press(await open(`/${id}/delete`), "Delete webhook");
  t.regex(deleted.text, /The webhook was deleted/);
  t.deepEqual(await list(), []);
});

const WRONG_FORMS: [
  what: string,
  fields: Record<string, string | string[]>,
  field: string,
  message: RegExp,
][] = [
  ["no address", { url: "" }, "url", /absolute URL/],
  ["a private address", { url: "https://192.168.0.1/in" }, "url", /public internet/],
  ["a name of this network", { url: "https://printer.local/" }, "url", /public internet/],
  ["another port", { url: "https://hooks.example.com:8080/" }, "url", /443 or 8443/],
];

for (const [what, fields, field, message] of WRONG_FORMS) {
  test(`sec 131: a form of a webhook with ${what} comes back with the reason beside it`, async (t) => {
    const { person, create, open, look, list } = await withBrowser();
    const { id, secret: _, ...webhook } = await create();
    for (const [address, button] of [
      ["/new", "Create webhook"],
      [`/${id}/edit`, "Save webhook"],
    ] as const) {
      const typed = { events: ["link.deleted", "link.updated"], ...fields };
      const again = await person.press(await open(address), button, typed);
      t.is(again.status, 422);
      isMarked(t, again, field, message);
      t.is(again.html.querySelector("[name=url]")?.attributes.value, fields.url as string);
      t.deepEqual(tickedIn(again), ["link.updated", "link.deleted"]);
    }
    t.is((await list()).length, 1);
    t.deepEqual(await look(id), { id, ...webhook } as Shown);
  });
}

test("a form of a webhook that is to be told of nothing comes back with the reason beside it", async (t) => {
  const { person, create, open, list } = await withBrowser();
  const { id } = await create();
  for (const [address, button] of [
    ["/new", "Create webhook"],
    [`/${id}/edit`, "Save webhook"],
  ] as const) {
    const again = await person.press(await open(address), button, { url: URL_OF, events: [] });
    t.is(again.status, 422);
    const group = again.html.querySelector("fieldset");
    t.is(group?.attributes["aria-describedby"], "events-error");
    t.regex(group?.querySelector("#events-error")?.text ?? "", /Tick one at least/);
    t.deepEqual(tickedIn(again), []);
  }
  t.deepEqual(
    (await list()).map(({ events }) => events),
    [["link.created"]],
  );
});

test("sec 94: the pages say that webhooks need a paid plan, and that those from before are paused", async (t) => {
  const { open, create, downgrade } = await withBrowser();
  const { id } = await create();
  await downgrade();
  t.regex((await open()).text, /Webhooks are paused on the Free plan/);
  const page = await open(`/${id}`);
  t.regex(page.text, /Webhooks are paused on the Free plan/);
  t.deepEqual(page.html.querySelectorAll("main form").length, 0);
  const free = await createTeam(service, "free");
  const { person } = await browserOf(service, free.owner);
  t.regex((await person.open(`${service.url}${free.base}/webhooks`)).text, /Webhooks need a paid plan/);
});

test("sec 119: no form of a webhook does anything without its token", async (t) => {
  const { person, create, path, look, list } = await withBrowser();
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
    const refused = await person.open(service.url + path + address, { method: "POST", body, headers });
    t.is(refused.status, 403, address);
  }
  t.deepEqual(await look(id), { id, ...webhook } as Shown);
  t.is((await list()).length, 1);
});

const secretIn = ({ html }: Page) =>
  html
    .querySelectorAll(".copyable code")
    .map(({ text }) => text)
    .find((text) => text.startsWith("whsec_")) ?? "none";

const tickedIn = ({ html }: Page) =>
  html.querySelectorAll("[name=events][checked]").map(({ attributes }) => attributes.value);
