import test from "ava";
import { type Api, apiAt, isProblem, type PageBody } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const [app, other] = [await service.createOrganization(), await service.createOrganization()];
const api = apiAt(service.url, await service.token(app));
const stranger = apiAt(service.url, await service.token(other));
for (let n = 0; n < 4; n++) {
  for (const caller of [api, stranger]) await caller.createLink({ title: "same title", tags: ["same"] });
}
test.after.always(() => service.close());

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
    const cursor = edit(await cursorOf(api));
    const reply = await api.send("GET", `/v1/links?cursor=${encodeURIComponent(cursor)}`);
    isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
  });
}

test("a cursor of another organization is rejected", async (t) => {
  const cursor = await cursorOf(stranger);
  const reply = await api.send("GET", `/v1/links?cursor=${cursor}`);
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
      const cursor = await cursorOf(api, from);
      const reply = await api.send("GET", `/v1/links?cursor=${cursor}${to}`);
      isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
    });
  }
}

test("a cursor is valid for the same filter in another order, and for another token of the organization", async (t) => {
  const cursor = await cursorOf(api, "&tag=same&search=same");
  const sameOrganization = apiAt(service.url, await service.token(app));
  const { status, body } = await sameOrganization.get<PageBody>(
    `/v1/links?search=same&cursor=${cursor}&tag=same`,
  );
  t.is(status, 200);
  t.is(body.data.length, 2);
});

test("a cursor doesn't lead to links of other organizations", async (t) => {
  const { body } = await api.get<PageBody>(`/v1/links?limit=2&cursor=${await cursorOf(api)}`);
  t.is(body.data.length, 2);
  t.is(body.next_cursor, null);
});
