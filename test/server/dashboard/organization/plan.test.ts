import test from "ava";
import { OPERATOR } from "../../../resources/events.ts";
import { isMissing, isProblem } from "../../harness/api.ts";
import { browserOf, createColleague, createTeam } from "../../harness/dashboard.ts";
import { tokensFor } from "../../harness/flow.ts";
import { opensApi } from "../../harness/oauth.ts";
import { startTestService } from "../../harness/service.ts";
import { atOnce } from "../../harness/storage.ts";

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

test("the first paid plan makes a client whose secret gets a token", async (t) => {
  const { base, owner, organization } = await createTeam(service, "free");
  const { status, body } = await owner.api.send<Change>("PUT", `${base}/plan`, { json: { plan: "growth" } });
  t.is(status, 200);
  t.deepEqual(body.organization, { ...organization, plan: "growth" });
  t.deepEqual(Object.keys(body.client ?? {}), ["client_id", "client_secret"]);
  const token = await service.token(toClient(body.client as NonNullable<Change["client"]>));
  t.true(await opensApi(service, token));
});

test("sec 128: no later change of the plan shows a secret", async (t) => {
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

test("of many upgrades at once one makes the client", async (t) => {
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

test("sec 93, 94: on the free plan the tokens are refused at once, and no new ones are issued", async (t) => {
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
  ["a plan that is no text", { plan: ["growth"] }, "invalid_plan", ["plan"]],
  ["something else", { plan: "growth", price: 0 }, "unknown_field", ["price"]],
];

for (const [what, json, code, fields] of WRONG) {
  test(`a change to ${what} is refused and changes nothing`, async (t) => {
    const { base, owner, organization } = await createTeam(service, "free");
    isProblem(t, await owner.api.send("PUT", `${base}/plan`, { json }), { status: 422, code, fields });
    t.is((await service.storage.organizations.find(organization.id))?.plan, "free");
  });
}

test("with SELF_SERVICE_PLANS=off nobody changes a plan here, and the page says so", async (t) => {
  const { organization } = await managed.storage.organizations.create("Managed", "free", OPERATOR);
  const owner = await createColleague(managed, organization.id);
  const path = `/dashboard/organizations/${organization.id}/plan`;
  for (const method of ["PUT", "POST"]) {
    const reply = await owner.api.send(method, path, { json: { plan: "premium" } });
    isProblem(t, reply, { status: 403, code: "plans_managed_elsewhere" });
  }
  t.is((await managed.storage.organizations.find(organization.id))?.plan, "free");
  const { person } = await browserOf(managed, owner);
  const page = await person.open(managed.url + path);
  t.regex(page.text, /changed by whoever runs this service/);
  t.is(page.html.querySelector(`form[action="${path}"]`), null);
  await managed.storage.organizations.setPlan(organization.id, "premium", OPERATOR);
  t.is((await person.open(`${managed.url}${path}/free`)).status, 403, "no way down is offered either");
});

test("sec 128: in the browser the secret is shown once, on a page after the upgrade", async (t) => {
  const { base, owner } = await createTeam(service, "free");
  const { person } = await browserOf(service, owner);
  const plans = await person.open(`${service.url}${base}/plan`);
  t.regex(plans.text, /No payment is taken/);
  const upgraded = await person.press(plans, "Upgrade to Growth");
  t.is(upgraded.headers.get("cache-control"), "no-store");
  const [clientId = "", clientSecret = ""] = upgraded.html
    .querySelectorAll(".copyable code")
    .map(({ text }) => text);
  t.truthy(await service.token({ clientId, clientSecret }));
  for (const path of ["", "/plan", "/client", "/client/quick-start", "/audit", "/audit.csv"]) {
    t.false((await person.open(service.url + base + path)).text.includes(clientSecret), path);
  }
});

test("the way down says exactly what stops, and is no way up", async (t) => {
  const { base, owner, member, organization } = await createTeam(service, "premium");
  const app = await service.createOrganization();
  await tokensFor(service, app, member, { organizationId: organization.id });
  for (const enabled of [true, true, false]) {
    const json = { url: "https://example.com/hook", events: ["link.created"], enabled };
    await owner.api.send("POST", `${base}/webhooks`, { json });
  }
  const { person } = await browserOf(service, owner);
  const lower = await person.open(`${service.url}${base}/plan/growth`);
  t.regex(lower.html.text, /600 requests a minute instead of 3,000/);
  t.regex(lower.html.text, /client, its secrets, tokens, apps and webhooks stay/);

  const page = await person.open(`${service.url}${base}/plan/free`);
  t.regex(page.html.text, /refuse every token/);
  t.regex(page.html.text, /1 app stops working/);
  t.regex(page.html.text, /2 webhooks fall silent/);
  t.regex(page.html.text, /Short links go on redirecting/);
  const done = await person.press(page, "Change to Free");
  t.regex(done.text, /The plan was changed/);
  for (const plan of ["free", "growth", "gold"]) {
    isMissing(t, await owner.api.send("GET", `${base}/plan/${plan}`));
  }
});
