import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isMissing, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createColleague, createTeam } from "../../../harness/clients/dashboard.ts";
import { tokensFor } from "../../../harness/clients/flow.ts";
import { isAcceptedByApi } from "../../../harness/clients/oauth.ts";
import { atOnce } from "../../../harness/database/storage.ts";
import { startTestService } from "../../../harness/service.ts";
import { uniqueUrl } from "../../../harness/webhooks.ts";

const service = await startTestService();
const managed = await startTestService({ SELF_SERVICE_PLANS: "off" });
test.after.always(() => Promise.all([service.close(), managed.close()]));

type Change = {
  organization: { id: string; name: string; plan: string };
  client?: { client_id: string; client_secret: string };
};

const toClient = ({ client_id: clientId, client_secret: clientSecret }: NonNullable<Change["client"]>) => ({
  clientId,
  clientSecret,
});

test("the first upgrade creates a client that can get a token", async (t) => {
  const { base, owner, organization } = await createTeam(service, "free");
  const { status, body } = await owner.api.send<Change>("PUT", `${base}/plan`, { json: { plan: "growth" } });
  t.is(status, 200);
  t.deepEqual(body.organization, { ...organization, plan: "growth" });
  t.deepEqual(Object.keys(body.client ?? {}), ["client_id", "client_secret"]);
  const token = await service.token(toClient(body.client as NonNullable<Change["client"]>));
  t.true(await isAcceptedByApi(service, token));
});

test("later plan changes show no secret", async (t) => {
  const { base, owner } = await createTeam(service, "free");
  const change = (plan: string) => owner.api.send<Change>("PUT", `${base}/plan`, { json: { plan } });
  const { client } = (await change("growth")).body;
  for (const plan of ["premium", "premium", "free", "growth"]) {
    const { body } = await change(plan);
    t.is(body.organization.plan, plan);
    t.is(body.client, undefined);
  }
  t.truthy(await service.token(toClient(client as NonNullable<Change["client"]>)));
});

test("concurrent upgrades create exactly one client", async (t) => {
  for (let round = 0; round < 3; round++) {
    const { base, owner, admin } = await createTeam(service, "free");
    const replies = await atOnce(8, (index) =>
      (index % 2 ? owner : admin).api.send<Change>("PUT", `${base}/plan`, { json: { plan: "growth" } }),
    );
    t.true(replies.every(({ status }) => status === 200));
    const clients = replies.flatMap(({ body }) => body.client ?? []);
    t.is(clients.length, 1);
    t.truthy(await service.token(toClient(clients[0] as NonNullable<Change["client"]>)));
  }
});

test("a downgrade to Free rejects existing tokens immediately and issues no new ones", async (t) => {
  const { base, owner } = await createTeam(service, "free");
  const { body } = await owner.api.send<Change>("PUT", `${base}/plan`, { json: { plan: "growth" } });
  const client = toClient(body.client as NonNullable<Change["client"]>);
  const token = await service.token(client);
  await owner.api.send("PUT", `${base}/plan`, { json: { plan: "free" } });
  const { status } = await fetch(`${service.url}/v1/organization`, {
    headers: { authorization: `Bearer ${token}` },
  });
  t.is(status, 403);
  await t.throwsAsync(service.token(client), { message: /unauthorized_client/ });
});

const WRONG: [what: string, json: object, code: string, fields: string[]][] = [
  ["no plan", {}, "invalid_plan", ["plan"]],
  ["an unknown plan", { plan: "gold" }, "invalid_plan", ["plan"]],
  ["a plan in capitals", { plan: "GROWTH" }, "invalid_plan", ["plan"]],
  ["a plan that is not a string", { plan: ["growth"] }, "invalid_plan", ["plan"]],
  ["an unknown field", { plan: "growth", price: 0 }, "unknown_field", ["price"]],
];

for (const [what, json, code, fields] of WRONG) {
  test(`a plan change with ${what} is rejected and changes nothing`, async (t) => {
    const { base, owner, organization } = await createTeam(service, "free");
    isProblem(t, await owner.api.send("PUT", `${base}/plan`, { json }), { status: 422, code, fields });
    t.is((await service.storage.organizations.find(organization.id))?.plan, "free");
  });
}

test("with SELF_SERVICE_PLANS=off plans can't be changed in the dashboard, and the page says so", async (t) => {
  const { organization } = await managed.storage.organizations.create("Managed", "free", OPERATOR);
  const owner = await createColleague(managed, organization.id);
  const path = `/dashboard/organizations/${organization.id}/plan`;
  for (const method of ["PUT", "POST"]) {
    const reply = await owner.api.send(method, path, { json: { plan: "premium" } });
    isProblem(t, reply, { status: 403, code: "self_service_disabled" });
  }
  t.is((await managed.storage.organizations.find(organization.id))?.plan, "free");
  const { browser } = await browserOf(managed, owner);
  const page = await browser.open(managed.url + path);
  t.regex(page.text, /operator of this service manages plans/);
  t.is(page.html.querySelector(`form[action="${path}"]`), null);
  await managed.storage.organizations.setPlan(organization.id, "premium", OPERATOR);
  t.is((await browser.open(`${managed.url}${path}/free`)).status, 403, "no downgrade page either");
});

test("in a browser, the page after the upgrade is the only one that shows the secret", async (t) => {
  const { base, owner } = await createTeam(service, "free");
  const { browser } = await browserOf(service, owner);
  const plans = await browser.open(`${service.url}${base}/plan`);
  t.regex(plans.text, /Plans set your limits/);
  const upgraded = await browser.press(plans, "Upgrade to Growth");
  t.is(upgraded.headers.get("cache-control"), "no-store");
  const [clientId = "", clientSecret = ""] = upgraded.html
    .querySelectorAll(".copyable code")
    .map(({ text }) => text);
  t.truthy(await service.token({ clientId, clientSecret }));
  for (const path of ["", "/plan", "/client", "/client/quick-start", "/audit", "/audit.csv"]) {
    t.false((await browser.open(service.url + base + path)).text.includes(clientSecret), path);
  }
});

test("the downgrade page lists what stops, and exists for lower plans only", async (t) => {
  const { base, owner, member, organization } = await createTeam(service, "premium");
  const app = await service.createOrganization();
  await tokensFor(service, app, member, { organizationId: organization.id });
  for (const enabled of [true, true, false]) {
    const json = { url: uniqueUrl(), events: ["link.created"], enabled };
    await owner.api.send("POST", `${base}/webhooks`, { json });
  }
  const { browser } = await browserOf(service, owner);
  const lower = await browser.open(`${service.url}${base}/plan/growth`);
  t.regex(lower.html.text, /from 3,000 to 600 requests per minute/);
  t.regex(lower.html.text, /from 1,000,000 to 100,000 per day/);
  t.regex(lower.html.text, /client, its secrets and tokens, authorized apps and webhooks stay/);

  const page = await browser.open(`${service.url}${base}/plan/free`);
  t.regex(page.html.text, /API and MCP tokens stop working/);
  t.regex(page.html.text, /1 authorized app loses access/);
  t.regex(page.html.text, /2 webhooks stop receiving events/);
  t.regex(page.html.text, /Short links keep working/);
  const done = await browser.press(page, "Downgrade to Free");
  t.regex(done.text, /Plan changed/);
  for (const plan of ["free", "growth", "gold"]) {
    isMissing(t, await owner.api.send("GET", `${base}/plan/${plan}`));
  }
});

test("the plan page shows how much data the links have, also if it is little", async (t) => {
  const { base, owner } = await createTeam(service);
  await owner.api.send("POST", `${base}/links`, {
    json: { url: "https://example.com/", title: "x".repeat(200) },
  });
  const { body } = await owner.api.get<{ organization: { usage: { link_bytes: number } } }>(base);
  const { browser } = await browserOf(service, owner);
  const { html } = await browser.open(`${service.url}${base}/plan`);
  const shown = html.querySelectorAll("main dd").at(1)?.text ?? "";
  t.regex(shown, /^0\.\d KB of 1,000 MB$/);
  t.true(Math.abs(Number.parseFloat(shown) - body.organization.usage.link_bytes / 1000) <= 0.05, shown);
});
