import test from "ava";
import { OPERATOR } from "../../../resources/events.ts";
import { isMissing, isProblem } from "../../harness/api.ts";
import { browserOf, createColleague, createTeam } from "../../harness/dashboard.ts";
import { tokensFor } from "../../harness/flow.ts";
import { authorizeUrl, openConsent, opensApi } from "../../harness/oauth.ts";
import { Person } from "../../harness/person.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization("An app & sons");
test.after.always(() => service.close());

type Apps = {
  data: {
    id: string;
    app: string;
    client_id: string;
    user: { id: string; username: string };
    scopes: string[];
    granted_at: string;
    expires_at: string;
    last_used_at: string | null;
  }[];
};

/** A team, of which a user has allowed an app. */
async function withApp(scope = "links:read", who: "admin" | "member" = "member") {
  const team = await createTeam(service);
  const organizationId = team.organization.id;
  const tokens = await tokensFor(service, app, team[who], {
    organizationId,
    parameters: { scope },
  });
  const path = `${team.base}/apps`;
  const look = async () => (await team.owner.api.send<Apps>("GET", path)).body.data;
  return { ...team, path, token: tokens.access_token, look };
}

test("an app that may act for the organization is listed with who allowed what", async (t) => {
  const { member, look } = await withApp();
  const [shown, ...others] = await look();
  t.is(others.length, 0);
  t.is(shown?.app, "An app & sons");
  t.is(shown?.client_id, app.clientId);
  t.deepEqual(shown?.user, { id: member.id, username: member.username });
  t.deepEqual(shown?.scopes, ["links:read"]);
  t.true(Date.parse(shown?.granted_at ?? "") <= Date.now());
  t.true(Date.parse(shown?.expires_at ?? "") > Date.now());
});

test("what a write scope includes is not listed apart", async (t) => {
  const { look } = await withApp("links:write webhooks:read webhooks:write", "admin");
  t.deepEqual((await look())[0]?.scopes, ["links:write", "webhooks:write"]);
});

test("when an app was last used is noted", async (t) => {
  const { token, look } = await withApp();
  t.is((await look())[0]?.last_used_at, null);
  t.true(await opensApi(service, token));
  const deadline = Date.now() + 5000;
  let noted: string | null | undefined;
  while (!noted && Date.now() < deadline) noted = (await look())[0]?.last_used_at;
  t.true(Math.abs(Date.parse(noted ?? "") - Date.now()) < 60_000, String(noted));
});

for (const who of ["owner", "admin", "member"] as const) {
  test(`sec 130: an app that the ${who} revokes is refused at once`, async (t) => {
    const { [who]: person, path, token, look } = await withApp();
    t.true(await opensApi(service, token));
    const [{ id } = { id: "" }] = await look();
    t.is((await person.api.send("DELETE", `${path}/${id}`)).status, 204);
    t.false(await opensApi(service, token));
    t.deepEqual(await look(), []);
    isMissing(t, await person.api.send("DELETE", `${path}/${id}`));
  });
}

test("another member does not revoke what somebody else allowed", async (t) => {
  const { organization, path, token, look } = await withApp();
  const other = await createColleague(service, organization.id, "member");
  const [{ id } = { id: "" }] = await look();
  isProblem(t, await other.api.send("DELETE", `${path}/${id}`), { status: 403, code: "role_required" });
  t.true(await opensApi(service, token));
});

test("sec 91: an app of another organization is neither seen nor revoked", async (t) => {
  const { stranger, other, token, look } = await withApp();
  const [{ id } = { id: "" }] = await look();
  const theirs = `/dashboard/organizations/${other.id}/apps`;
  t.deepEqual((await stranger.api.send<Apps>("GET", theirs)).body.data, []);
  isMissing(t, await stranger.api.send("DELETE", `${theirs}/${id}`));
  t.true(await opensApi(service, token));
});

test("an app is revoked in the browser", async (t) => {
  const { owner, path, token, member } = await withApp();
  const { person } = await browserOf(service, owner);
  const page = await person.open(service.url + path);
  t.regex(page.html.querySelector("table")?.text ?? "", new RegExp(`An app & sons[^]*${member.username}`));
  const button = page.html.querySelectorAll("button").find(({ text }) => text.startsWith("Revoke"));
  const done = await person.submit(page, {}, button?.closest("form"));
  t.regex(done.text, /The app has lost its access/);
  t.regex(done.text, /No app may act for this organization/);
  t.false(await opensApi(service, token));
});

test("an app of somebody who is no member any more is not listed", async (t) => {
  const { organization, member, look } = await withApp();
  await service.storage.members.remove({
    organizationId: organization.id,
    userId: member.id,
    touches: ["member"],
    by: OPERATOR,
  });
  t.deepEqual(await look(), []);
});

test("whoever signs in for an app is signed in at the dashboard, and the other way round", async (t) => {
  const { member } = await withApp();
  const request = authorizeUrl(service, app);
  const before = new Person(service.url);
  await openConsent(before, member, request);
  t.is((await before.open(`${service.url}/dashboard`)).html.querySelector("h1")?.text, "Team");
  const { person: after } = await browserOf(service, member);
  t.is((await after.open(request)).html.querySelector("h1")?.text, "Allow access?");
});
