import test from "ava";
import { scopesOfRole } from "../../../resources/access/scopes.ts";
import { apiAt } from "../../harness/clients/api.ts";
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

for (const role of ["owner", "member"] as const)
  test(`the token of a user shows the role ${role} and its scopes, also after the role changed`, async (t) => {
    const app = await service.createOrganization();
    await service.createUser([app.id], undefined, "owner");
    const user = await service.createUser([app.id], undefined, role === "owner" ? "member" : "admin");
    const { access_token } = await tokensFor(service, app, user, { organizationId: app.id });
    const change = { organizationId: app.id, userId: user.id, role, actor: OPERATOR };
    await service.storage.members.changeRole({ ...change, manageableRoles: ["owner", "admin", "member"] });
    type Member = { role: string; role_scopes: string[] };
    const { body } = await apiAt(service.url, access_token).get<Member>(PATH);
    t.deepEqual([body.role, body.role_scopes], [role, [...scopesOfRole(role)]]);
  });
