import test from "ava";
import type { Role } from "../../../adapters/organizations/store.ts";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { createTeam } from "../../harness/clients/dashboard.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const team = await createTeam(service);
test.after.always(() => service.close());

const ALL: Role[] = ["owner", "admin", "member"];
const MANAGERS: Role[] = ["owner", "admin"];
const OWNERS: Role[] = ["owner"];
const UNKNOWN_ID = "usr_01AAAAAAAAAAAAAAAAAAAAAAAA";

// Changes have invalid input or an unknown id: an allowed role gets that error, and nothing changes.
const ROUTES: [method: string, path: string, json: object | undefined, roles: Role[], status: number][] = [
  ["GET", "", undefined, ALL, 200],
  ["PATCH", "", {}, MANAGERS, 422],
  ["POST", "", {}, MANAGERS, 422],
  ["POST", "/delete", {}, OWNERS, 422],
  ["POST", "/checklist", {}, ALL, 204],
  ["PUT", "/fallback-url", {}, MANAGERS, 422],
  ["POST", "/fallback-url", {}, MANAGERS, 422],
  ["GET", "/settings", undefined, ALL, 200],
  ["GET", "/members", undefined, ALL, 200],
  ["PATCH", `/members/${UNKNOWN_ID}`, { role: "member" }, MANAGERS, 404],
  ["DELETE", `/members/${UNKNOWN_ID}`, undefined, MANAGERS, 404],
  ["GET", `/members/${UNKNOWN_ID}/delete`, undefined, MANAGERS, 404],
  ["POST", `/members/${UNKNOWN_ID}/delete`, {}, MANAGERS, 404],
  ["GET", "/members/me/delete", undefined, ALL, 200],
  ["POST", "/members/me/delete", { delete_webhooks: "all" }, ALL, 422],
  ["POST", `/members/${UNKNOWN_ID}/reset-link`, {}, OWNERS, 404],
  ["GET", `/members/${UNKNOWN_ID}/reset-link/view`, undefined, OWNERS, 404],
  ["GET", `/members/${UNKNOWN_ID}/sign-out`, undefined, OWNERS, 404],
  ["POST", `/members/${UNKNOWN_ID}/sign-out`, {}, OWNERS, 404],
  ["GET", "/invitations", undefined, MANAGERS, 200],
  ["GET", "/invitations/new-link/view", undefined, MANAGERS, 404],
  ["POST", "/invitations", { role: "boss" }, MANAGERS, 422],
  ["DELETE", "/invitations/inv_1", undefined, MANAGERS, 404],
  ["GET", "/plan", undefined, ALL, 200],
  ["PUT", "/plan", {}, MANAGERS, 422],
  ["POST", "/plan", {}, MANAGERS, 422],
  ["GET", "/client", undefined, MANAGERS, 200],
  ["GET", "/client/quick-start", undefined, MANAGERS, 200],
  ["GET", "/connect", undefined, ALL, 200],
  ["GET", "/client/new-secret/view", undefined, MANAGERS, 404],
  ["POST", "/client/rotate", { overlap_hours: -1 }, MANAGERS, 422],
  ["POST", "/client/disable", { reason: "" }, OWNERS, 422],
  ["POST", "/client/enable", {}, OWNERS, 204],
  ["DELETE", "/client/secrets/sec_1", undefined, MANAGERS, 404],
  ["PUT", "/client/redirect-uris", {}, MANAGERS, 422],
  ["POST", "/client/redirect-uris", {}, MANAGERS, 422],
  ["GET", "/workload-identity", undefined, MANAGERS, 200],
  ["POST", "/workload-identity", {}, MANAGERS, 422],
  ["DELETE", "/workload-identity/trs_1", undefined, MANAGERS, 404],
  ["POST", "/workload-identity/trs_1/delete", {}, MANAGERS, 404],
  ["GET", "/links", undefined, ALL, 200],
  ["POST", "/links", {}, ALL, 422],
  ["POST", "/links/selection", {}, ALL, 422],
  ["GET", "/links/import", undefined, ALL, 200],
  ["POST", "/links/import", {}, ALL, 422],
  ["GET", "/links.csv", undefined, ALL, 200],
  ["GET", "/analytics.csv", undefined, ALL, 200],
  ["GET", "/links/lnk_1/analytics.csv", undefined, ALL, 404],
  ["GET", "/links/lnk_1", undefined, ALL, 404],
  ["PATCH", "/links/lnk_1", { title: "One" }, ALL, 404],
  ["DELETE", "/links/lnk_1", undefined, ALL, 404],
  ["GET", "/links/lnk_1/qr.svg", undefined, ALL, 404],
  ["GET", "/links/lnk_1/qr.png", undefined, ALL, 404],
  ["GET", "/links/lnk_1/analytics", undefined, ALL, 404],
  ["GET", "/analytics", undefined, ALL, 200],
  ["GET", "/webhooks", undefined, MANAGERS, 200],
  ["POST", "/webhooks", {}, MANAGERS, 422],
  ["GET", "/webhooks/whk_1", undefined, MANAGERS, 404],
  ["PATCH", "/webhooks/whk_1", { enabled: true }, MANAGERS, 404],
  ["DELETE", "/webhooks/whk_1", undefined, MANAGERS, 404],
  ["POST", "/webhooks/whk_1/rotate-secret", undefined, MANAGERS, 404],
  ["POST", "/webhooks/whk_1/secret", undefined, MANAGERS, 404],
  ["GET", "/webhooks/whk_1/secret/view", undefined, MANAGERS, 404],
  ["POST", "/webhooks/whk_1/test", undefined, MANAGERS, 404],
  ["GET", "/webhooks/whk_1/deliveries", undefined, MANAGERS, 404],
  ["GET", "/webhooks/whk_1/deliveries/evt_1", undefined, MANAGERS, 404],
  ["POST", "/webhooks/whk_1/deliveries/evt_1/resend", undefined, MANAGERS, 404],
  ["GET", "/webhooks/whk_1/deliveries/resend-failed", undefined, MANAGERS, 404],
  ["POST", "/webhooks/whk_1/deliveries/resend-failed", undefined, MANAGERS, 404],
  ["GET", "/apps", undefined, ALL, 200],
  ["DELETE", "/apps/nothing", undefined, ALL, 404],
  ["GET", "/apps/nothing/delete", undefined, ALL, 404],
  ["POST", "/apps/nothing/delete", {}, ALL, 404],
  ["PUT", "/apps", {}, MANAGERS, 422],
  ["POST", "/apps", {}, MANAGERS, 422],
  ["GET", "/apps/approve", undefined, MANAGERS, 422],
  ["POST", "/apps/approved", {}, MANAGERS, 422],
  ["DELETE", "/apps/approved/app_1", undefined, MANAGERS, 404],
  ["POST", "/apps/approved/app_1/delete", {}, MANAGERS, 404],
  ["GET", "/audit", undefined, MANAGERS, 200],
  ["GET", "/audit.csv", undefined, MANAGERS, 200],
];

for (const [method, path, json, roles, status] of ROUTES) {
  const options = json ? { json } : {};

  test(`${method} …${path} is allowed for ${roles.join(", ")} only`, async (t) => {
    for (const role of ALL) {
      const reply = await team[role].api.send(method, team.base + path, options);
      if (roles.includes(role)) t.is(reply.status, status, `${role}: ${reply.text.slice(0, 300)}`);
      else isProblem(t, reply, { status: 403, code: "role_required" });
    }
  });

  test(`${method} …${path} of another organization returns 404`, async (t) => {
    isMissing(t, await team.stranger.api.send(method, team.base + path, options));
    isMissing(t, await team.owner.api.send(method, `/dashboard/organizations/org_unknown${path}`, options));
  });

  test(`${method} …${path} requires a signed-in user`, async (t) => {
    isProblem(t, await apiAt(service.url).send(method, team.base + path, options), {
      status: 401,
      code: "sign_in_required",
    });
  });

  test(`${method} …${path} rejects an API token`, async (t) => {
    const organization = await service.createOrganization();
    const api = apiAt(service.url, await service.token(organization));
    t.is((await api.send(method, team.base + path, options)).status, 401);
  });
}

test("a resource of another organization is not found below the user's own organization", async (t) => {
  const { owner, stranger, base, other } = team;
  const theirs = `/dashboard/organizations/${other.id}`;
  const client = (await stranger.api.send<{ secrets: { id: string }[] }>("GET", `${theirs}/client`)).body;
  const invited = await stranger.api.send<{ invitation: { id: string } }>("POST", `${theirs}/invitations`, {
    json: {},
  });
  for (const path of [
    `/client/secrets/${client.secrets[0]?.id}`,
    `/invitations/${invited.body.invitation.id}`,
    `/members/${stranger.id}`,
  ]) {
    isMissing(t, await owner.api.send("DELETE", base + path));
  }
  const role = { json: { role: "member" } };
  isMissing(t, await owner.api.send("PATCH", `${base}/members/${stranger.id}`, role));
});
