import test from "ava";
import { type Api, apiAt, isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const newApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
const api = await newApi();
const created: LinkBody[] = [];
for (let n = 0; n < 60; n++) created.push(await api.createLink({ title: `link ${n}` }));

const [app, other] = [await service.createOrganization(), await service.createOrganization()];
const ownApi = apiAt(service.url, await service.token(app));
const stranger = apiAt(service.url, await service.token(other));
for (let n = 0; n < 4; n++) {
  for (const caller of [ownApi, stranger]) await caller.createLink({ title: "same title", tags: ["same"] });
}

test.after.always(() => service.close());

const list = (caller: Api, query = "") => caller.get<PageBody>(`/v1/links${query}`);
const ids = (links: LinkBody[]) => links.map(({ id }) => id);
const newestFirst = ids(created).toReversed();

test("an organization without links has an empty list", async (t) => {
  const { status, body } = await list(await newApi());
  t.is(status, 200);
  t.deepEqual(body, { data: [], next_cursor: null });
});

test("a list starts with the newest links, and shows each as the link itself", async (t) => {
  const { body, headers } = await list(api);
  t.regex(headers.get("content-type") ?? "", /^application\/json\b/);
  t.deepEqual(ids(body.data), newestFirst.slice(0, 25));
  t.is(typeof body.next_cursor, "string");
  t.deepEqual(body.data[3], (await api.get(`/v1/links/${body.data[3]?.id}`)).body);
});

for (const limit of [1, 7, 25, 59, 60, 100]) {
  test(`pages of ${limit} cover the whole list, without gaps or duplicates`, async (t) => {
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const { body }: { body: PageBody } = await list(
        api,
        `?limit=${limit}${cursor ? `&cursor=${cursor}` : ""}`,
      );
      t.true(body.data.length <= limit && body.data.length > 0);
      seen.push(...ids(body.data));
      cursor = body.next_cursor;
      pages++;
    } while (cursor);
    t.deepEqual(seen, newestFirst);
    t.is(pages, Math.ceil(60 / limit));
  });
}

test("pagination has no gaps or duplicates while links are created, updated and deleted", async (t) => {
  const caller = await newApi();
  const own: LinkBody[] = [];
  for (let n = 0; n < 60; n++) own.push(await caller.createLink());
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const { body }: { body: PageBody } = await list(caller, `?limit=9${cursor ? `&cursor=${cursor}` : ""}`);
    seen.push(...ids(body.data));
    cursor = body.next_cursor;
    await Promise.all([caller.createLink(), caller.createLink()]);
    const [last] = seen.slice(-1);
    await caller.send("PATCH", `/v1/links/${last}`, { json: { title: "changed" } });
    await caller.send("DELETE", `/v1/links/${last}`);
  } while (cursor);
  t.deepEqual(seen, ids(own).toReversed());
});

test("the limit may change between pages", async (t) => {
  const first = (await list(api, "?limit=10")).body;
  const second = (await list(api, `?limit=100&cursor=${first.next_cursor}`)).body;
  t.deepEqual(ids([...first.data, ...second.data]), newestFirst);
  t.is(second.next_cursor, null);
});

test("links created concurrently are listed in one order, each once", async (t) => {
  const caller = await newApi();
  const own = await Promise.all(Array.from({ length: 30 }, () => caller.createLink()));
  const listed = ids((await list(caller, "?limit=100")).body.data);
  t.deepEqual(listed, ids(own).sort().toReversed());
});

const invalid: [query: string, field: string][] = [
  ...[
    "0",
    "-1",
    "101",
    "1.5",
    "",
    "abc",
    "1e1",
    "0x10",
    "+5",
    "%2010",
    "10%20",
    "NaN",
    "Infinity",
    "9".repeat(400),
    "١٠",
    "null",
    "5&limit=6",
  ].map((value): [string, string] => [`limit=${value}`, "limit"]),
  ["limit[]=5", "limit[]"],
  ["search=", "search"],
  [`search=${"x".repeat(256)}`, "search"],
  ["search=%00", "search"],
  ["search=a&search=b", "search"],
  ["tag=", "tag"],
  [`tag=${"x".repeat(51)}`, "tag"],
  ["tag=a%00", "tag"],
  ["tag=a&tag=b", "tag"],
  ...["1", "0", "TRUE", "yes", "", "null", "true&archived=true"].map((value): [string, string] => [
    `archived=${value}`,
    "archived",
  ]),
  ["offset=5", "offset"],
  ["organization_id=org_x", "organization_id"],
  ...["", "title", "clicks,id", "clicks&sort=clicks"].map((value): [string, string] => [
    `sort=${value}`,
    "sort",
  ]),
  ...["", "a b", "a%00", "x".repeat(65), "a&slug=b"].map((value): [string, string] => [
    `slug=${value}`,
    "slug",
  ]),
  ...["", "a b", "a%00", "x".repeat(2049), "a&url=b"].map((value): [string, string] => [
    `url=${value}`,
    "url",
  ]),
  ...["", "a%00", "x".repeat(256)].map((value): [string, string] => [`external_id=${value}`, "external_id"]),
  ...["", "yesterday", "2030-01-31", "2030-01-31T12:00:00", "1772357400"].flatMap(
    (value): [string, string][] => [
      [`created_after=${value}`, "created_after"],
      [`created_before=${value}`, "created_before"],
    ],
  ),
  ["__proto__=x", "__proto__"],
];
for (const [query, field] of invalid) {
  test(`the query ${query.slice(0, 40)} is rejected with an error for ${field}`, async (t) => {
    const reply = await api.send("GET", `/v1/links?${query}`);
    isProblem(t, reply, { status: 422, code: reply.body.code, fields: [field] });
  });
}

async function cursorOf(caller: Api, query = ""): Promise<string> {
  const { body } = await caller.get<PageBody>(`/v1/links?limit=2${query}`);
  if (!body.next_cursor) throw new Error("no next page");
  return body.next_cursor;
}

const flip = (text: string, index: number) =>
  text.slice(0, index) + (text[index] === "A" ? "B" : "A") + text.slice(index + 1);
const edits: [name: string, edit: (cursor: string) => string][] = [
  ["its first character changed", (cursor) => flip(cursor, 0)],
  ["a character in the middle changed", (cursor) => flip(cursor, 25)],
  ["a character of its position changed", (cursor) => flip(cursor, cursor.length - 8)],
  ["its last character removed", (cursor) => cursor.slice(0, -1)],
  ["its second half removed", (cursor) => cursor.slice(0, cursor.length / 2)],
  ["only its signature", (cursor) => cursor.slice(0, 21)],
  ["extra characters", (cursor) => `${cursor}AAAA`],
  ["its halves swapped", (cursor) => cursor.slice(30) + cursor.slice(0, 30)],
  ["all letters in lower case", (cursor) => cursor.toLowerCase()],
  ["no characters", () => ""],
  ["a link ID as its value", () => "lnk_01ARZ3NDEKTSV4RRFFQ69G5FAV"],
  [
    "a base64-encoded ID as its value",
    () => Buffer.from("lnk_01ARZ3NDEKTSV4RRFFQ69G5FAV").toString("base64url"),
  ],
  ["SQL as its value", () => "' or 1=1 --"],
  ["a NUL character", () => "\u0000"],
  ["thousands of characters", () => "A".repeat(10_000)],
];
for (const [name, edit] of edits) {
  test(`a cursor with ${name} is rejected`, async (t) => {
    const cursor = edit(await cursorOf(ownApi));
    const reply = await ownApi.send("GET", `/v1/links?cursor=${encodeURIComponent(cursor)}`);
    isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
  });
}

test("a cursor of another organization is rejected", async (t) => {
  const cursor = await cursorOf(stranger);
  const reply = await ownApi.send("GET", `/v1/links?cursor=${cursor}`);
  isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
  t.is((await stranger.get(`/v1/links?cursor=${cursor}`)).status, 200);
});

const filters = [
  "",
  "&tag=same",
  "&search=same",
  "&archived=false",
  "&tag=same&search=same",
  "&search=title",
  "&archived=true",
];
const withCursor = filters.filter((filter) => !filter.includes("archived=true"));
for (const from of withCursor) {
  for (const to of filters.filter((filter) => filter !== from)) {
    test(`a cursor for the filter "${from}" is rejected with the filter "${to}"`, async (t) => {
      const cursor = await cursorOf(ownApi, from);
      const reply = await ownApi.send("GET", `/v1/links?cursor=${cursor}${to}`);
      isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
    });
  }
}

test("a cursor is valid for the same filter in another order, and for another token of the organization", async (t) => {
  const cursor = await cursorOf(ownApi, "&tag=same&search=same");
  const sameOrganization = apiAt(service.url, await service.token(app));
  const { status, body } = await sameOrganization.get<PageBody>(
    `/v1/links?search=same&cursor=${cursor}&tag=same`,
  );
  t.is(status, 200);
  t.is(body.data.length, 2);
});

test("a cursor doesn't lead to links of other organizations", async (t) => {
  const { body } = await ownApi.get<PageBody>(`/v1/links?limit=2&cursor=${await cursorOf(ownApi)}`);
  t.is(body.data.length, 2);
  t.is(body.next_cursor, null);
});
