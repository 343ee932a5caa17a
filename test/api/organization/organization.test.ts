import test from "ava";
import { apiAt, newApi } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

const service = await startTestService();

const PATH = "/v1/organization";
type Organization = {
  id: string;
  name: string;
  plan: string;
  limits: Record<string, number>;
  fallback_url: string | null;
  usage: { links: number; link_bytes: number; webhooks: number; deliveries_today: number };
};

test("an organization has its name, plan, limits and usage", async (t) => {
  const name = `Ünïcode & <b>"quoted"</b>`;
  const app = await service.createOrganization(name, "premium");
  const { status, body } = await apiAt(service.url, await service.token(app)).get<Organization>(PATH);
  t.is(status, 200);
  const usage = { links: 0, link_bytes: 0, domains: 0, webhooks: 0, deliveries_today: 0 };
  const { limits, ...rest } = body;
  t.deepEqual(rest, { id: app.id, name, plan: "premium", fallback_url: null, usage });
  t.true(Object.values(limits).every((limit) => Number.isInteger(limit) && limit > 0));
});

for (const [role, scopes] of [
  [
    "owner",
    ["links:read", "links:write", "domains:read", "domains:write", "webhooks:read", "webhooks:write"],
  ],
  ["member", ["links:read", "links:write"]],
] as const)
  test(`the token of a user shows the role ${role} and its scopes, also after the role changed`, async (t) => {
    const app = await service.createOrganization();
    await service.createUser([app.id], undefined, "owner");
    const user = await service.createUser([app.id], undefined, role === "owner" ? "member" : "admin");
    const { access_token } = await tokensFor(service, app, user, { organizationId: app.id });
    const change = { organizationId: app.id, userId: user.id, role, actor: OPERATOR };
    await service.storage.members.changeRole({ ...change, manageableRoles: ["owner", "admin", "member"] });
    type Member = { role: string; role_scopes: string[] };
    const { body } = await apiAt(service.url, access_token).get<Member>(PATH);
    t.deepEqual([body.role, body.role_scopes], [role, [...scopes]]);
  });

test("usage counts only the existing links and webhooks of the organization, with each change", async (t) => {
  const api = await newApi(service);
  const other = await newApi(service);
  const statements: string[] = [];
  t.teardown(service.onStatement((sql) => statements.push(sql)));
  const count = async () => (await api.get<Organization>(PATH)).body.usage;
  const { id } = await api.createLink();
  await api.createLink();
  await other.createLink();
  const webhook = { url: "https://example.com/hook", events: ["link.created"] };
  t.is((await api.send("POST", "/v1/webhooks", { json: webhook })).status, 201);
  await api.send("PATCH", `/v1/links/${id}`, { json: { archived: true } });
  const { link_bytes } = await count();
  t.like(await count(), { links: 2, webhooks: 1 });
  await api.send("DELETE", `/v1/links/${id}`);
  t.like(await count(), { links: 1, webhooks: 1 });
  t.true((await count()).link_bytes < link_bytes);
  const counts = statements.filter((sql) => /count\(.*from .links./.test(sql));
  t.deepEqual(counts, [], "the links aren't counted");
});
