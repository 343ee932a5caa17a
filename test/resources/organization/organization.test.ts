import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

type Organization = {
  id: string;
  name: string;
  plan: string;
  limits: Record<string, number>;
  fallback_url: string | null;
  usage: { links: number; link_bytes: number; webhooks: number; deliveries_today: number };
};

for (const plan of ["growth", "premium"] as const) {
  test(`an organization on ${plan} has its name, plan, limits and usage`, async (t) => {
    const name = `Ünïcode & <b>"quoted"</b> ${plan}`;
    const app = await service.createOrganization(name, plan);
    const api = apiAt(service.url, await service.token(app));
    const { status, headers, body } = await api.get<Organization>("/v1/organization");
    t.is(status, 200);
    t.regex(headers.get("content-type") ?? "", /^application\/json\b/);
    t.deepEqual(Object.keys(body).sort(), ["fallback_url", "id", "limits", "name", "plan", "usage"]);
    t.regex(body.id, /^org_/);
    t.is(body.id, app.id);
    t.is(body.name, name);
    t.is(body.plan, plan);
    t.is(body.fallback_url, null);
    t.true(Object.values(body.limits).every((limit) => Number.isInteger(limit) && limit > 0));
    t.deepEqual(body.usage, { links: 0, link_bytes: 0, webhooks: 0, deliveries_today: 0 });
  });
}

for (const [role, scopes] of [
  ["owner", ["links:read", "links:write", "webhooks:read", "webhooks:write"]],
  ["member", ["links:read", "links:write"]],
] as const) {
  test(`the token of a user shows the role ${role} and its scopes, also after the role changed`, async (t) => {
    const app = await service.createOrganization();
    await service.createUser([app.id], undefined, "owner");
    const user = await service.createUser([app.id], undefined, role === "owner" ? "member" : "admin");
    const { access_token } = await tokensFor(service, app, user, { organizationId: app.id });
    const actor = OPERATOR;
    const manageableRoles = ["owner", "admin", "member"] as const;
    await service.storage.members.changeRole({
      organizationId: app.id,
      userId: user.id,
      role,
      manageableRoles,
      actor,
    });
    const { body } = await apiAt(service.url, access_token).get<{ role: string; role_scopes: string[] }>(
      "/v1/organization",
    );
    t.deepEqual([body.role, body.role_scopes], [role, [...scopes]]);
  });
}

test("usage counts only the existing links and webhooks of the organization", async (t) => {
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  const count = async () => (await api.get<Organization>("/v1/organization")).body.usage;
  const { id } = await api.createLink();
  await api.createLink();
  await other.createLink();
  t.like(await count(), { links: 2, webhooks: 0 });
  const webhook = { url: "https://example.com/hook", events: ["link.created"] };
  t.is((await api.send("POST", "/v1/webhooks", { json: webhook })).status, 201);
  await api.send("PATCH", `/v1/links/${id}`, { json: { archived: true } });
  t.like(await count(), { links: 2, webhooks: 1 });
  await api.send("DELETE", `/v1/links/${id}`);
  t.like(await count(), { links: 1, webhooks: 1 });
});

test("the current plan is returned", async (t) => {
  const app = await service.createOrganization();
  const api = apiAt(service.url, await service.token(app));
  await service.storage.organizations.setPlan(app.id, "premium", OPERATOR);
  const { body } = await api.get<Organization>("/v1/organization");
  t.is(body.plan, "premium");
  await service.storage.organizations.setPlan(app.id, "free", OPERATOR);
  isProblem(t, await api.get("/v1/organization"), { status: 403, code: "plan_required" });
});

test("the organization cannot be changed through the API", async (t) => {
  const app = await service.createOrganization();
  const api = apiAt(service.url, await service.token(app));
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    const reply = await api.send(method, "/v1/organization", { json: { plan: "premium" } });
    isProblem(t, reply, { status: 405, code: "method_not_allowed" });
  }
  t.is((await api.get<Organization>("/v1/organization?id=org_other&plan=premium")).body.id, app.id);
});
