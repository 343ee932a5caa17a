import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { apiAt, isMissing, isProblem } from "../../../harness/clients/api.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { tokensFor } from "../../../harness/clients/flow.ts";
import { isAcceptedByApi, postAsClient } from "../../../harness/clients/oauth.ts";
import { startTestService, type TestOrganization } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

/** Creates a team with a client, a link and authorized apps. */
async function createFullTeam() {
  const team = await createTeam(service, "free");
  const { id } = team.organization;
  const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
  const own = { id, name: "Team", ...change?.client } as TestOrganization;
  const token = await service.token(own);
  const link = await apiAt(service.url, token).createLink();
  const foreign = await service.createOrganization();
  const visitor = await service.createUser([foreign.id]);
  // Another organization's app acts for this one, and this one's app for another.
  const inward = await tokensFor(service, foreign, team.member, { organizationId: id });
  const outward = await tokensFor(service, own, visitor);
  return { ...team, own, token, link, inward: inward.access_token, outward: outward.access_token };
}

test("deleting an organization immediately revokes its tokens and stops its links", async (t) => {
  const { base, owner, member, own, token, link, inward, outward } = await createFullTeam();
  for (const one of [token, inward, outward]) t.true(await isAcceptedByApi(service, one));
  t.is((await fetch(link.short_url, { redirect: "manual" })).status, 302);

  t.is((await owner.api.send("DELETE", base)).status, 204);

  for (const one of [token, inward, outward]) t.false(await isAcceptedByApi(service, one));
  const refused = await postAsClient(service, "token", own, { grant_type: "client_credentials" });
  t.is(refused.status, 401);
  t.is(refused.body.error, "invalid_client");
  t.is((await fetch(link.short_url, { redirect: "manual" })).status, 410);
  isMissing(t, await owner.api.send("GET", base));
  isMissing(t, await owner.api.send("DELETE", base));
  const { body } = await member.api.send<{ organizations: [] }>("GET", "/dashboard/me");
  t.deepEqual(body.organizations, []);
});

test("the slug of a deleted organization's link can't be used again", async (t) => {
  const { base, owner, link } = await createFullTeam();
  await owner.api.send("DELETE", base);
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  const reply = await other.send("POST", "/v1/links", {
    json: { url: "https://example.com/", slug: link.slug },
  });
  isProblem(t, reply, { status: 409, code: "slug_taken", fields: ["slug"] });
});

test("a deleted organization isn't listed, and its plan can't be changed", async (t) => {
  const { base, owner, organization } = await createFullTeam();
  await owner.api.send("DELETE", base);
  const { organizations } = service.storage;
  t.is(await organizations.find(organization.id), undefined);
  t.is(await organizations.setPlan(organization.id, "premium", OPERATOR), undefined);
  t.false((await organizations.list()).some(({ id }) => id === organization.id));
});

for (const role of ["admin", "member"] as const) {
  test(`${role === "admin" ? "an" : "a"} ${role} can't delete the organization`, async (t) => {
    const { base, [role]: user, token } = await createFullTeam();
    isProblem(t, await user.api.send("DELETE", base), { status: 403, code: "role_required" });
    t.true(await isAcceptedByApi(service, token));
  });
}

test("deleting with POST requires the exact name, in JSON too", async (t) => {
  const { base, owner, token } = await createFullTeam();
  for (const name of ["team", "Team ", "", undefined]) {
    const reply = await owner.api.send("POST", `${base}/delete`, { json: { name } });
    isProblem(t, reply, { status: 422, code: "invalid_name" });
  }
  t.true(await isAcceptedByApi(service, token));
});
