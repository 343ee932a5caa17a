import test from "ava";
import { readQr, readQrPng } from "../../../harness/browser/qr.ts";
import {
  apiAt,
  BROWSER,
  isMissing,
  isProblem,
  type LinkBody,
  type PageBody,
} from "../../../harness/clients/api.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { linksInBrowser } from "../../../harness/clients/pages.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();

const elsewhere = await startTestService({ SHORT_URL: "https://go.example" });

test.after.always(() => Promise.all([service.close(), elsewhere.close()]));

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

const follow = ({ short_url }: LinkBody) =>
  fetch(short_url, { redirect: "manual", headers: { "user-agent": BROWSER } });

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
    ["GET", `${theirs}/qr.png`],
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

test("the QR code of a link contains its short URL", async (t) => {
  const { member, path, create } = await linksInBrowser(service);
  for (const slug of ["q", "a-slug-of-some-length", undefined]) {
    const link = await create(slug ? { slug } : {});
    const { status, headers, text } = await member.api.send("GET", `${path}/${link.id}/qr.svg`);
    t.is(status, 200);
    t.is(headers.get("content-type"), "image/svg+xml");
    t.is(headers.get("content-disposition"), null);
    t.is(readQr(text), link.short_url);
  }
});

test("the QR code uses the host of SHORT_URL", async (t) => {
  const { base, owner } = await createTeam(elsewhere, "free");
  const created = await owner.api.send<{ id: string }>("POST", `${base}/links`, {
    json: { url: "https://example.com/", slug: "spring" },
  });
  const { text } = await owner.api.send("GET", `${base}/links/${created.body.id}/qr.svg`);
  t.is(readQr(text), "https://go.example/spring");
});

test("the page of a link shows its QR code and offers it for download", async (t) => {
  const { browser, create, open } = await linksInBrowser(service);
  const link = await create({ slug: "spring" });
  const page = await open(`/${link.id}`);
  const image = page.html.querySelector(".qr img");
  t.regex(image?.attributes.alt ?? "", /^QR code for localhost:\d+\/spring$/);
  t.is(readQr((await browser.open(service.url + image?.attributes.src)).text), link.short_url);
  const download = await browser.open(service.url + page.html.querySelector("a[download]")?.attributes.href);
  t.is(download.headers.get("content-disposition"), 'attachment; filename="spring.svg"');
  t.is(readQr(download.text), link.short_url);
  const links = page.html.querySelectorAll("a[download]").map(({ attributes }) => attributes.href ?? "");
  t.is(links.length, 2);
  const png = await browser.open(service.url + links[1]);
  t.is(png.headers.get("content-type"), "image/png");
  t.is(png.headers.get("content-disposition"), 'attachment; filename="spring.png"');
});

const QR_OPTIONS: [query: string, size: number | undefined, color: string][] = [
  ["", undefined, "000000"],
  ["size=128", 128, "000000"],
  ["size=1000&color=1F5FBF", 1000, "1f5fbf"],
  ["size=2048&color=%23b3261e&download=1", 2048, "b3261e"],
];
for (const [query, size, color] of QR_OPTIONS) {
  test(`a QR code with the query “${query}” is the same as SVG and as PNG`, async (t) => {
    const { member, path, create } = await linksInBrowser(service);
    const link = await create();
    const svg = (await member.api.send("GET", `${path}/${link.id}/qr.svg?${query}`)).text;
    t.is(readQr(svg), link.short_url);
    t.is(/<svg width="(\d+)" height="\1"/.exec(svg)?.[1], size?.toString());
    t.true(svg.includes(`<path fill="#${color}"`));
    const response = await fetch(`${service.url}${path}/${link.id}/qr.png?${query}`, {
      headers: { authorization: `Bearer ${member.token}` },
    });
    const png = readQrPng(Buffer.from(await response.arrayBuffer()));
    t.deepEqual(png, { text: link.short_url, size: size ?? 512, color });
  });
}

const INVALID_QR_OPTIONS: [query: string, field: string][] = [
  ["size=127", "size"],
  ["size=2049", "size"],
  ["size=large", "size"],
  ["size=1e3", "size"],
  ["color=red", "color"],
  ["color=ffffff", "color"],
  ["color=9e9e9e", "color"],
  ["color=%22/%3E%3Cscript%3E", "color"],
];
for (const [query, field] of INVALID_QR_OPTIONS) {
  test(`a QR code with ${query} is rejected`, async (t) => {
    const { member, path, create } = await linksInBrowser(service);
    const { id } = await create();
    for (const format of ["svg", "png"]) {
      const reply = await member.api.send("GET", `${path}/${id}/qr.${format}?${query}`);
      isProblem(t, reply, { status: 422, code: `invalid_${field}`, fields: [field] });
    }
  });
}

test("the QR code of a link stays correct when it is archived or its slug changes", async (t) => {
  const { member, path, create } = await linksInBrowser(service);
  const { id, short_url } = await create();
  const read = async () => readQr((await member.api.send("GET", `${path}/${id}/qr.svg`)).text);
  await member.api.send("PATCH", `${path}/${id}`, { json: { archived: true } });
  t.is(await read(), short_url);
  await member.api.send("PATCH", `${path}/${id}`, { json: { slug: "renamed" } });
  t.is(await read(), `${service.url}/renamed`);
});

test("the QR code of a deleted link, or of another organization's link, is not found", async (t) => {
  const { member, stranger, other, path, create } = await linksInBrowser(service);
  const [deleted, theirs] = [await create(), await create()];
  await member.api.send("DELETE", `${path}/${deleted.id}`);
  isMissing(t, await member.api.send("GET", `${path}/${deleted.id}/qr.svg`));
  isMissing(
    t,
    await stranger.api.send("GET", `/dashboard/organizations/${other.id}/links/${theirs.id}/qr.svg`),
  );
});
