import test from "ava";
import { apiAt, isMissing, isProblem, type LinkBody, type PageBody } from "../../harness/api.ts";
import { createTeam } from "../../harness/dashboard.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

/** A team, and the links of its organization as a member sees them. */
async function withLinks(plan: "free" | "growth" = "growth") {
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
  test(`on the ${plan} plan a member makes, finds, changes and deletes links, and they redirect`, async (t) => {
    const { member, path, list } = await withLinks(plan);
    const { api } = member;
    const made = await api.send<LinkBody>("POST", path, {
      json: { url: "https://example.com/a", tags: ["x"] },
    });
    t.is(made.status, 201);
    t.is(made.body.created_by, member.id);
    t.is((await follow(made.body)).headers.get("location"), "https://example.com/a");
    const one = `${path}/${made.body.id}`;
    const changed = await api.send<LinkBody>("PATCH", one, { json: { url: "https://example.com/b" } });
    t.is((await follow(changed.body)).headers.get("location"), "https://example.com/b");
    t.deepEqual(
      (await list("tag=x")).map(({ id, clicks }) => [id, clicks]),
      [[made.body.id, 2]],
    );
    t.is((await api.send("DELETE", one)).status, 204);
    t.is((await follow(made.body)).status, 410);
    isMissing(t, await api.get(one));
  });
}

test("the dashboard and the API show the same link", async (t) => {
  const { path, organization, create, member } = await withLinks();
  const made = await create({ title: "One", metadata: { a: 1 } });
  const client = await service.storage.clients.ofOrganization(organization.id);
  const rotated = await service.storage.clients.rotateSecret(
    organization.id,
    { overlapMs: 0, compromised: false },
    { actor: "operator" },
  );
  const clientSecret = rotated?.clientSecret as string;
  const token = await service.token({ clientId: client?.clientId as string, clientSecret });
  const there = await apiAt(service.url, token).get(`/v1/links/${made.id}`);
  const here = await member.api.get(`${path}/${made.id}`);
  t.deepEqual(here.body, there.body);
  t.is(here.headers.get("etag"), there.headers.get("etag"));
});

const WRONG_INPUT: [what: string, json: object, code: string, fields: string[]][] = [
  ["no address", {}, "invalid_url", ["url"]],
  ["another scheme", { url: "javascript:alert(1)" }, "invalid_url", ["url"]],
  ["an address of this service", { url: `${service.url}/other` }, "invalid_url", ["url"]],
  ["a reserved slug", { url: "https://example.com/", slug: "dashboard" }, "invalid_slug", ["slug"]],
  [
    "an organization",
    { url: "https://example.com/", organization_id: "org_1" },
    "unknown_field",
    ["organization_id"],
  ],
  ["clicks", { url: "https://example.com/", clicks: 7 }, "unknown_field", ["clicks"]],
];

for (const [what, json, code, fields] of WRONG_INPUT) {
  test(`sec 92: a link with ${what} is refused, and none is made`, async (t) => {
    const { member, path, list } = await withLinks();
    isProblem(t, await member.api.send("POST", path, { json }), { status: 422, code, fields });
    t.deepEqual(await list(), []);
  });
}

test("sec 91: a link of another organization is not there, whatever is asked for", async (t) => {
  const { base, create, look, stranger, other } = await withLinks();
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

test("a change that starts from what is no longer there is refused", async (t) => {
  const { member, path, create, look } = await withLinks();
  const link = await create();
  const one = `${path}/${link.id}`;
  const etag = (await member.api.get(one)).headers.get("etag") as string;
  const change = (title: string) =>
    member.api.send<LinkBody>("PATCH", one, { json: { title }, headers: { "if-match": etag } });
  t.is((await change("First")).status, 200);
  isProblem(t, await change("Second"), { status: 412, code: "precondition_failed" });
  isProblem(t, await member.api.send("DELETE", one, { headers: { "if-match": etag } }), {
    status: 412,
    code: "precondition_failed",
  });
  t.is((await look(link.id)).title, "First");
});
