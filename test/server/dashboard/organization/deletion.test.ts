import test from "ava";
import { OPERATOR } from "../../../resources/events.ts";
import { apiAt, isMissing, isProblem } from "../../harness/api.ts";
import { createTeam } from "../../harness/dashboard.ts";
import { tokensFor } from "../../harness/flow.ts";
import { ask, opensApi } from "../../harness/oauth.ts";
import { startTestService, type TestOrganization } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

/** A team with everything that an organization can have. */
async function full() {
  const team = await createTeam(service, "free");
  const { id } = team.organization;
  const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
  const own = { id, name: "Team", ...change?.client } as TestOrganization;
  const token = await service.token(own);
  const link = await apiAt(service.url, token).createLink();
  const foreign = await service.createOrganization();
  const visitor = await service.createUser([foreign.id]);
  // An app of others acts for this organization, and its own app for others.
  const inward = await tokensFor(service, foreign, team.member, { organizationId: id });
  const outward = await tokensFor(service, own, visitor);
  return { ...team, own, token, link, inward: inward.access_token, outward: outward.access_token };
}

test("sec 60: an organization that is deleted ends all at once", async (t) => {
  const { base, owner, member, own, token, link, inward, outward } = await full();
  for (const one of [token, inward, outward]) t.true(await opensApi(service, one));
  t.is((await fetch(link.short_url, { redirect: "manual" })).status, 302);

  t.is((await owner.api.send("DELETE", base)).status, 204);

  for (const one of [token, inward, outward]) t.false(await opensApi(service, one));
  const refused = await ask(service, "token", own, { grant_type: "client_credentials" });
  t.is(refused.status, 401);
  t.is(refused.body.error, "invalid_client");
  t.is((await fetch(link.short_url, { redirect: "manual" })).status, 410);
  isMissing(t, await owner.api.send("GET", base));
  isMissing(t, await owner.api.send("DELETE", base));
  const { body } = await member.api.send<{ organizations: [] }>("GET", "/dashboard/me");
  t.deepEqual(body.organizations, []);
});

test("the address of a link is not given out again after its organization is gone", async (t) => {
  const { base, owner, link } = await full();
  await owner.api.send("DELETE", base);
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  const reply = await other.send("POST", "/v1/links", {
    json: { url: "https://example.com/", slug: link.slug },
  });
  isProblem(t, reply, { status: 409, code: "slug_taken", fields: ["slug"] });
});

test("a deleted organization is on no list, and its plan cannot be changed", async (t) => {
  const { base, owner, organization } = await full();
  await owner.api.send("DELETE", base);
  const { organizations } = service.storage;
  t.is(await organizations.find(organization.id), undefined);
  t.is(await organizations.setPlan(organization.id, "premium", OPERATOR), undefined);
  t.false((await organizations.list()).some(({ id }) => id === organization.id));
});

for (const role of ["admin", "member"] as const) {
  test(`the ${role} does not delete the organization`, async (t) => {
    const { base, [role]: person, token } = await full();
    isProblem(t, await person.api.send("DELETE", base), { status: 403, code: "role_required" });
    t.true(await opensApi(service, token));
  });
}

test("in JSON as in the form, the name has to be typed to POST a deletion", async (t) => {
  const { base, owner, token } = await full();
  for (const name of ["team", "Team ", "", undefined]) {
    const reply = await owner.api.send("POST", `${base}/delete`, { json: { name } });
    isProblem(t, reply, { status: 422, code: "invalid_name" });
  }
  t.true(await opensApi(service, token));
});
