import test from "ava";
import { type Api, apiAt, isProblem, type PageBody } from "../../harness/api.ts";
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
  if (!body.next_cursor) throw new Error("there is no next page");
  return body.next_cursor;
}

const flip = (text: string, at: number) =>
  text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
const edits: [name: string, edit: (cursor: string) => string][] = [
  ["its first character changed", (cursor) => flip(cursor, 0)],
  ["a character in the middle changed", (cursor) => flip(cursor, 25)],
  ["a character of its position changed", (cursor) => flip(cursor, cursor.length - 8)],
  ["its last character cut", (cursor) => cursor.slice(0, -1)],
  ["its last half cut", (cursor) => cursor.slice(0, cursor.length / 2)],
  ["its signature alone", (cursor) => cursor.slice(0, 21)],
  ["a character more", (cursor) => `${cursor}AAAA`],
  ["its halves exchanged", (cursor) => cursor.slice(30) + cursor.slice(0, 30)],
  ["its case changed", (cursor) => cursor.toLowerCase()],
  ["nothing in it", () => ""],
  ["a link's id instead", () => "lnk_01ARZ3NDEKTSV4RRFFQ69G5FAV"],
  ["an id in base64 instead", () => Buffer.from("lnk_01ARZ3NDEKTSV4RRFFQ69G5FAV").toString("base64url")],
  ["SQL instead", () => "' or 1=1 --"],
  ["NUL", () => "\u0000"],
  ["10,000 characters", () => "A".repeat(10_000)],
];
for (const [name, edit] of edits) {
  test(`sec 100: a cursor with ${name} is 422 invalid_cursor`, async (t) => {
    const cursor = edit(await cursorOf(api));
    const reply = await api.send("GET", `/v1/links?cursor=${encodeURIComponent(cursor)}`);
    isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
  });
}

test("sec 100: the cursor of another organization is refused", async (t) => {
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
    test(`sec 100: a cursor of the list "${from}" is refused in the list "${to}"`, async (t) => {
      const cursor = await cursorOf(api, from);
      const reply = await api.send("GET", `/v1/links?cursor=${cursor}${to}`);
      isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
    });
  }
}

test("a cursor is good for the same filter in another order, and for another token of the organization", async (t) => {
  const cursor = await cursorOf(api, "&tag=same&search=same");
  const again = apiAt(service.url, await service.token(app));
  const { status, body } = await again.get<PageBody>(`/v1/links?search=same&cursor=${cursor}&tag=same`);
  t.is(status, 200);
  t.is(body.data.length, 2);
});

test("sec 100: a cursor tells nothing of other organizations' links", async (t) => {
  const { body } = await api.get<PageBody>(`/v1/links?limit=2&cursor=${await cursorOf(api)}`);
  t.is(body.data.length, 2);
  t.is(body.next_cursor, null);
});
