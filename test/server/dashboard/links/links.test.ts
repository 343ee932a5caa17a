import test from "ava";
import { apiAt, isMissing, isProblem, type LinkBody, type PageBody } from "../../../harness/clients/api.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

/** Creates a team, with helpers to use the links of its organization as a member. */
async function createTeamWithLinks(plan: "free" | "growth" = "growth") {
  const team = await createTeam(service, plan);
  const path = `${team.base}/links`;
  const { api } = team.member;
  return {
    ...team,
    path,
    create: async (fields: object = {}) =>
      (await api.send<LinkBody>("POST", path, { json: { url: "https://example.com/", ...fields } })).body,
    look: async (id: string) => (await api.get(`${path}/${id}`)).body,
    list: async (query = "") => (await api.get<PageBody>(`${path}?${query}`)).body.data,
  };
}

const follow = (link: LinkBody) => fetch(link.short_url, { redirect: "manual" });

for (const plan of ["free", "growth"] as const) {
  test(`on the ${plan} plan a member can create, find, update and delete links, and they redirect`, async (t) => {
    const { member, path, list } = await createTeamWithLinks(plan);
    const { api } = member;
    const created = await api.send<LinkBody>("POST", path, {
      json: { url: "https://example.com/a", tags: ["x"] },
    });
    t.is(created.status, 201);
    t.is(created.body.created_by, member.id);
    t.is((await follow(created.body)).headers.get("location"), "https://example.com/a");
    const one = `${path}/${created.body.id}`;
    const updated = await api.send<LinkBody>("PATCH", one, { json: { url: "https://example.com/b" } });
    t.is((await follow(updated.body)).headers.get("location"), "https://example.com/b");
    t.deepEqual(
      (await list("tag=x")).map(({ id, clicks }) => [id, clicks]),
      [[created.body.id, 2]],
    );
    t.is((await api.send("DELETE", one)).status, 204);
    t.is((await follow(created.body)).status, 410);
    isMissing(t, await api.get(one));
  });
}

test("the dashboard and the API return the same link", async (t) => {
  const { path, organization, create, member } = await createTeamWithLinks();
  const created = await create({ title: "One", metadata: { a: 1 } });
  const client = await service.storage.clients.findByOrganization(organization.id);
  const rotated = await service.storage.clients.rotateSecret(
    organization.id,
    { overlapMs: 0, compromised: false },
    { id: "operator" },
  );
  const clientSecret = rotated?.clientSecret as string;
  const token = await service.token({ clientId: client?.clientId as string, clientSecret });
  const fromApi = await apiAt(service.url, token).get(`/v1/links/${created.id}`);
  const fromDashboard = await member.api.get(`${path}/${created.id}`);
  t.deepEqual(fromDashboard.body, fromApi.body);
  t.is(fromDashboard.headers.get("etag"), fromApi.headers.get("etag"));
});

const INVALID_INPUT: [name: string, json: object, code: string, fields: string[]][] = [
  ["no URL", {}, "invalid_url", ["url"]],
  ["another URL scheme", { url: "javascript:alert(1)" }, "invalid_url", ["url"]],
  ["a URL of this service", { url: `${service.url}/other` }, "invalid_url", ["url"]],
  ["a reserved slug", { url: "https://example.com/", slug: "dashboard" }, "invalid_slug", ["slug"]],
  [
    "an organization",
    { url: "https://example.com/", organization_id: "org_1" },
    "unknown_field",
    ["organization_id"],
  ],
  ["clicks", { url: "https://example.com/", clicks: 7 }, "unknown_field", ["clicks"]],
];

for (const [name, json, code, fields] of INVALID_INPUT) {
  test(`a link with ${name} is rejected, and none is created`, async (t) => {
    const { member, path, list } = await createTeamWithLinks();
    isProblem(t, await member.api.send("POST", path, { json }), { status: 422, code, fields });
    t.deepEqual(await list(), []);
  });
}

test("a link of another organization is not found by any request", async (t) => {
  const { base, create, look, stranger, other } = await createTeamWithLinks();
  const link = await create();
  const theirs = `/dashboard/organizations/${other.id}/links/${link.id}`;
  const calls: [method: string, path: string, json?: object][] = [
    ["GET", theirs],
    ["PATCH", theirs, { title: "Mine" }],
    ["POST", theirs, { archived: true }],
    ["DELETE", theirs],
    ["POST", `${theirs}/delete`],
    ["GET", `${theirs}/edit`],
    ["GET", `${theirs}/delete`],
    ["GET", `${theirs}/qr.svg`],
    ["GET", `${theirs}/analytics`],
    ["GET", `${base}/links/${link.id}`],
  ];
  for (const [method, path, json] of calls) {
    isMissing(t, await stranger.api.send(method, path, json ? { json } : {}));
  }
  t.deepEqual(await look(link.id), link);
});

test("an update or deletion of an outdated version is rejected", async (t) => {
  const { member, path, create, look } = await createTeamWithLinks();
  const link = await create();
  const one = `${path}/${link.id}`;
  const etag = (await member.api.get(one)).headers.get("etag") as string;
  const update = (title: string) =>
    member.api.send<LinkBody>("PATCH", one, { json: { title }, headers: { "if-match": etag } });
  t.is((await update("First")).status, 200);
  isProblem(t, await update("Second"), { status: 412, code: "precondition_failed" });
  isProblem(t, await member.api.send("DELETE", one, { headers: { "if-match": etag } }), {
    status: 412,
    code: "precondition_failed",
  });
  t.is((await look(link.id)).title, "First");
});
