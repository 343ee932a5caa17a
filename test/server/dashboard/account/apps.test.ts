import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { apiAt, isMissing, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { tokensFor } from "../../../harness/clients/flow.ts";
import { isAcceptedByApi } from "../../../harness/clients/oauth.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const PATH = "/dashboard/account/apps";
type Apps = {
  data: { id: string; app: string; organization: { id: string; name: string }; scopes: string[] }[];
};

/** Creates a team whose member has authorized an app there and in another organization, and whose admin did as well. */
async function createAuthorizations() {
  const team = await createTeam(service);
  const { organization, other, member, admin } = team;
  await service.storage.organizations.addMember(other.id, member.id, "member", OPERATOR);
  const app = await service.createOrganization("Reports");
  const here = await tokensFor(service, app, member, { organizationId: organization.id });
  const there = await tokensFor(service, app, member, { organizationId: other.id });
  const ofAdmin = await tokensFor(service, app, admin, { organizationId: organization.id });
  return { ...team, here: here.access_token, there: there.access_token, ofAdmin: ofAdmin.access_token };
}

test("a user sees and revokes the apps authorized for all organizations, and no one else's", async (t) => {
  const { organization, other, member, admin, here, there, ofAdmin } = await createAuthorizations();
  const { body } = await member.api.get<Apps>(PATH);
  t.deepEqual(
    body.data.map(({ app, organization: { name } }) => `${app} ${name}`).toSorted(),
    [`Reports ${organization.name}`, `Reports ${other.name}`].toSorted(),
  );
  t.deepEqual(body.data[0]?.scopes, ["links:write"]);

  const own = body.data.find((app) => app.organization.id === other.id);
  const { data } = (await admin.api.get<Apps>(PATH)).body;
  t.is(data.length, 1);
  isMissing(t, await member.api.send("DELETE", `${PATH}/${data[0]?.id}`));
  t.is((await member.api.send("DELETE", `${PATH}/${own?.id}`)).status, 204);
  t.false(await isAcceptedByApi(service, there));
  t.true(await isAcceptedByApi(service, here));
  t.true(await isAcceptedByApi(service, ofAdmin));
  isMissing(t, await member.api.send("DELETE", `${PATH}/${own?.id}`));
});

test("the account page leads to the list, which leads to a page that revokes access", async (t) => {
  const { member, here, there } = await createAuthorizations();
  const { browser } = await browserOf(service, member);
  const account = await browser.open(`${service.url}/dashboard/account`);
  const link = account.html.querySelector(`a[href="${PATH}"]`);
  t.truthy(link);
  const page = await browser.open(service.url + PATH);
  const links = page.html.querySelectorAll(`a[href^="${PATH}/"]`);
  t.is(links.length, 2);
  const confirmation = await browser.open(service.url + links[0]?.attributes.href);
  const revoked = await browser.press(confirmation, "Revoke access");
  t.regex(revoked.text, /Access revoked\./);
  const accepted = await Promise.all([here, there].map((token) => isAcceptedByApi(service, token)));
  t.is(accepted.filter(Boolean).length, 1);
});

test("the list requires a signed-in user", async (t) => {
  isProblem(t, await apiAt(service.url).send("GET", PATH), { status: 401, code: "sign_in_required" });
});
