import test from "ava";
import type { Api, LinkBody, PageBody } from "../../harness/clients/api.ts";
import { isInvalid, isProblem, newApi } from "../../harness/clients/api.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();

type Result = {
  id: string;
  status: number;
  link?: LinkBody;
  error?: { code: string; detail: string; errors?: { field: string }[] };
};

const url = "https://example.com/spring";
const update = (caller: Api, json: object, headers = {}) =>
  caller.send<{ results: Result[] }>("PATCH", "/v1/links/bulk", { json, headers });
const resultsOf = async (caller: Api, json: object) => {
  const { status, body, text } = await update(caller, json);
  if (status !== 200) throw new Error(text);
  return body.results;
};
const linksOf = async (caller: Api, query = "") =>
  (await caller.get<PageBody>(`/v1/links?limit=100${query}`)).body.data;

const idsOf = (all: { id: string }[]) => all.map(({ id }) => id);

async function newCaller() {
  const organization = await service.createOrganization();
  const api = await newApi({ ...service, createOrganization: async () => organization });
  const countEvents = async () =>
    (await service.storage.audit.list(organization.id, { types: ["link.updated"] }, 100)).length;
  return { api, organization, countEvents };
}

test("all changes are made to each link, in the order of the IDs", async (t) => {
  const { api, countEvents } = await newCaller();
  const own: LinkBody[] = [];
  for (const name of ["a", "b", "c"])
    own.push(await api.createLink({ url: `${url}?utm_term=${name}`, tags: ["old", name] }));
  const ids = idsOf(own).toReversed();
  const results = await resultsOf(api, {
    ids: [...ids, ids[0]],
    changes: {
      add_tags: ["new"],
      remove_tags: ["old"],
      archived: true,
      expires_at: "2098-01-31T12:00:00Z",
      replace_in_url: { find: "/spring", with: "/summer" },
      utm: { source: "mail", term: null },
    },
  });
  t.deepEqual(idsOf(results), ids);
  for (const [index, name] of ["c", "b", "a"].entries())
    t.like(results[index], {
      status: 200,
      link: {
        url: "https://example.com/summer?utm_source=mail",
        tags: [name, "new"],
        archived: true,
        expires_at: "2098-01-31T12:00:00.000Z",
      },
    });
  t.deepEqual(await linksOf(api), results.map(({ link }) => link) as LinkBody[]);
  t.is(await countEvents(), 3);
});

test("a link that can't be changed doesn't affect the others", async (t) => {
  const { api } = await newCaller();
  const stranger = (await newCaller()).api;
  const plain = await api.createLink({ url });
  const full = await api.createLink({ url, tags: Array.from({ length: 20 }, (_, n) => `tag ${n}`) });
  const disabled = await api.createLink({ url });
  await service.storage.disabledLinks.disable(disabled.id, "phishing", OPERATOR);
  const foreign = await stranger.createLink({ url });
  const deleted = await api.createLink({ url });
  await api.send("DELETE", `/v1/links/${deleted.id}`);
  const last = await api.createLink({ url });
  const outcomes: [id: string, outcome: number | string][] = [
    [plain.id, 200],
    [full.id, "invalid_tags"],
    [disabled.id, "link_disabled"],
    [foreign.id, "not_found"],
    [deleted.id, "not_found"],
    ["lnk_nothing", "not_found"],
    ["\u0000\ud800", "not_found"],
    [last.id, 200],
  ];
  const ids = outcomes.map(([id]) => id);
  const results = await resultsOf(api, { ids, changes: { add_tags: ["new"] } });
  const seen = results.map(({ id, status, error }) => [id, error?.code ?? status] as const);
  t.deepEqual(seen, outcomes as unknown as typeof seen);
  for (const { link, error } of results) t.is(link === undefined, error !== undefined);
  t.deepEqual((await stranger.get(`/v1/links/${foreign.id}`)).body, foreign);
});

test("a replacement whose result is no valid destination is that link's error", async (t) => {
  const { api } = await newCaller();
  const plain = await api.createLink({ url: "https://example.com/a" });
  const other = await api.createLink({ url: "http://example.com/a" });
  const replacements: [find: string, text: string, message: RegExp][] = [
    ["https:", "ftp:", /must be an http or https URL/],
    ["https://example.com", service.url, /must not point to this service/],
    ["https://example.com", "https:// example.com", /must not contain spaces/],
    ["https://example.com/", `https://example.com/${"x".repeat(2027)}`, /at most 2048 characters/],
  ];
  for (const [find, text, message] of replacements) {
    const changes = { replace_in_url: { find, with: text }, utm: { source: "mail" } };
    const [refused, changed] = await resultsOf(api, { ids: [plain.id, other.id], changes });
    t.like(refused, { id: plain.id, status: 422, error: { code: "invalid_url" } }, find);
    t.regex(refused?.error?.detail ?? "", message);
    t.is(changed?.status, 200);
  }
  t.is((await api.get(`/v1/links/${plain.id}`)).body.url, "https://example.com/a");
});

test("a filter changes the links that match if they are as many as expected, and otherwise none", async (t) => {
  const { api, countEvents } = await newCaller();
  const created: LinkBody[] = [];
  for (const n of [0, 1, 2]) created.push(await api.createLink({ url: `${url}/${n}`, tags: ["campaign"] }));
  const other = await api.createLink({ url });
  const changes = { archived: true };
  for (const expected_count of [2, 4]) {
    const reply = await update(api, { filter: { tag: "campaign" }, expected_count, changes });
    isProblem(t, reply, { status: 409, code: "count_mismatch" });
    const { detail } = reply.body as unknown as { detail: string };
    t.true(detail.includes("3") && detail.includes(String(expected_count)), detail);
  }
  t.is(await countEvents(), 0);
  const results = await resultsOf(api, { filter: { tag: "campaign" }, expected_count: 3, changes });
  t.deepEqual(idsOf(results), idsOf(created).toReversed());
  const others = await linksOf(api, "&archived=false");
  t.deepEqual(idsOf(others), [other.id]);
  const filters: [filter: object, count: number][] = [
    [{ url: `${url}/1`, archived: true }, 1],
    [{ search: "SPRING/", tag: "campaign" }, 3],
    [{ created_after: other.created_at }, 1],
    [{}, 4],
  ];
  for (const [filter, expected_count] of filters) {
    const results = await resultsOf(api, { filter, expected_count, changes: { add_tags: ["seen"] } });
    t.is(results.length, expected_count);
  }
});

test("a request expects at most as many links as the plan has requests per minute, and needs links:write", async (t) => {
  const { api, organization } = await newCaller();
  const { id } = await api.createLink({ url });
  const changes = { archived: true };
  const many = await update(api, { filter: { tag: "a" }, expected_count: 601, changes });
  isInvalid(t, many, "expected_count");
  const token = await service.token(organization, { scope: "links:read" });
  const reader = await update(api, { ids: [id], changes }, { authorization: `Bearer ${token}` });
  isProblem(t, reader, { status: 403, code: "insufficient_scope" });
  t.is((await api.get(`/v1/links/${id}`)).body.archived, false);
});
