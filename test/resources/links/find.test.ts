import test from "ava";
import { apiAt, isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const newApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
const [api, stranger] = [await newApi(), await newApi()];
test.after.always(() => service.close());

const URL_OF_ALL = "https://example.com/Page?a=1&b=%C3%A4#ü";
const LONG = `https://example.com/${"long/".repeat(400)}`;
const links: LinkBody[] = [];
test.before(async () => {
  for (const [index, url] of [URL_OF_ALL, URL_OF_ALL, LONG, `${LONG}x`].entries()) {
    const own = { slug: `find-${index}`, external_id: `crm/${index} ä` };
    links.push(await api.createLink({ url, ...own, tags: index === 0 ? ["first"] : [] }));
  }
  await stranger.createLink({ url: URL_OF_ALL, slug: "find-other", external_id: "crm/0 ä" });
});

async function find(query: Record<string, string>): Promise<number[]> {
  const { status, body, text } = await api.get<PageBody>(`/v1/links?${new URLSearchParams(query)}`);
  if (status !== 200) throw new Error(text);
  return body.data.map(({ id }) => links.findIndex((link) => link.id === id));
}

const FOUND: [query: Record<string, string>, indexes: number[]][] = [
  [{ slug: "find-2" }, [2]],
  [{ slug: "FIND-2" }, []],
  [{ slug: "find-other" }, []],
  [{ external_id: "crm/1 ä" }, [1]],
  [{ external_id: "crm/1" }, []],
  [{ url: URL_OF_ALL }, [1, 0]],
  [{ url: URL_OF_ALL, sort: "created_at" }, [0, 1]],
  [{ url: URL_OF_ALL, tag: "first" }, [0]],
  [{ url: URL_OF_ALL, archived: "true" }, []],
  [{ url: URL_OF_ALL.toLowerCase() }, []],
  [{ url: "https://example.com/" }, []],
  [{ url: LONG }, [2]],
  [{ url: LONG, slug: "find-3" }, []],
];
for (const [query, indexes] of FOUND) {
  test(`${JSON.stringify(query).slice(0, 80)} finds ${indexes.length > 0 ? `the links ${indexes.join(" and ")}` : "no links"}`, async (t) => {
    t.deepEqual(await find(query), indexes);
  });
}

test("links are found by when they were created: from the first time up to, but without, the second", async (t) => {
  const [created_after = "", , created_before = ""] = links.map(({ created_at }) => created_at);
  const isWithin = ({ created_at }: LinkBody) => created_at >= created_after && created_at < created_before;
  const expected = links.flatMap((link, index) => (isWithin(link) ? [index] : []));
  t.deepEqual(await find({ created_after, created_before, sort: "created_at" }), expected);
  t.deepEqual(await find({ created_after: "2001-01-01T00:00:00+14:00", sort: "created_at" }), [0, 1, 2, 3]);
  t.deepEqual(await find({ created_after: "9999-12-31T23:59:59Z" }), []);
  t.deepEqual(await find({ created_before: "0001-01-01T00:00:00Z" }), []);
});

test("pages of the links with one URL have no gaps, and their cursor is bound to it", async (t) => {
  const query = `/v1/links?limit=1&url=${encodeURIComponent(URL_OF_ALL)}`;
  const first = (await api.get<PageBody>(query)).body;
  const second = (await api.get<PageBody>(`${query}&cursor=${first.next_cursor}`)).body;
  t.deepEqual([first.data[0]?.id, second.data[0]?.id], [links[1]?.id, links[0]?.id]);
  t.is(second.next_cursor, null);
  const other = await api.get(`/v1/links?limit=1&url=${LONG}&cursor=${first.next_cursor}`);
  isProblem(t, other, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
});

test("a link is retrieved by its external ID, with the same headers as by its ID", async (t) => {
  const path = `/v1/links/by-external-id/${encodeURIComponent("crm/0 ä")}`;
  const reply = await api.get<LinkBody>(path);
  t.is(reply.status, 200);
  t.deepEqual(reply.body, links[0]);
  const etag = (await api.get(`/v1/links/${links[0]?.id}`)).headers.get("etag") as string;
  t.is(reply.headers.get("etag"), etag);
  t.is((await api.get(path, { "if-none-match": etag })).status, 304);
});

test("an external ID named like another path is retrieved", async (t) => {
  const other = await newApi();
  const link = await other.createLink({ external_id: "analytics" });
  t.deepEqual((await other.get("/v1/links/by-external-id/analytics")).body, link);
});

for (const id of ["unknown", "crm%2F9", "%E4"]) {
  test(`the external ID ${id}, which no link of the organization has, is not found`, async (t) => {
    isProblem(t, await api.get(`/v1/links/by-external-id/${id}`), { status: 404, code: "not_found" });
  });
}

test("many links are looked up at the same time", async (t) => {
  const lookups = Array.from({ length: 60 }, (_, index) => find({ slug: `find-${index % 4}` }));
  t.deepEqual(
    (await Promise.all(lookups)).flat(),
    Array.from({ length: 60 }, (_, index) => index % 4),
  );
});
