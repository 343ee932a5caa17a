import test from "ava";
import {
  type Api,
  apiAt,
  isProblem,
  type LinkBody,
  type PageBody,
  type Reply,
} from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
test.after.always(() => service.close());

const A_PERSON = { "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0" };
const CLICKS = [2, 0, 1, 3, 0, 1, 2, 0, 1];

/** Creates links, and clicks each as often as `CLICKS` says, in the order of their creation. */
async function createClickedLinks(): Promise<{ api: Api; ids: string[] }> {
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  const ids: string[] = [];
  for (const [index, clicks] of CLICKS.entries()) {
    const tags = index % 2 === 0 ? ["even"] : [];
    const { id, short_url } = await api.createLink({ tags, title: `link ${index}` });
    ids.push(id);
    for (let click = 0; click < clicks; click++) {
      await fetch(short_url, { redirect: "manual", headers: A_PERSON });
    }
  }
  return { api, ids };
}

async function listAll(api: Api, query: string): Promise<LinkBody[]> {
  const links: LinkBody[] = [];
  let cursor: string | null = null;
  do {
    const { body, status, text }: Reply<PageBody> = await api.get(
      `/v1/links?${query}${cursor ? `&cursor=${cursor}` : ""}`,
    );
    if (status !== 200) throw new Error(text);
    links.push(...body.data);
    cursor = body.next_cursor;
  } while (cursor);
  return links;
}

let api: Api;
let ids: string[];
test.before(async () => {
  ({ api, ids } = await createClickedLinks());
});

const ORDERS: [query: string, order: number[]][] = [
  ["", [8, 7, 6, 5, 4, 3, 2, 1, 0]],
  ["sort=-created_at", [8, 7, 6, 5, 4, 3, 2, 1, 0]],
  ["sort=created_at", [0, 1, 2, 3, 4, 5, 6, 7, 8]],
  ["sort=created_at&tag=even", [0, 2, 4, 6, 8]],
  ["sort=-clicks", [3, 6, 0, 8, 5, 2, 7, 4, 1]],
  ["sort=clicks", [1, 4, 7, 2, 5, 8, 0, 6, 3]],
  ["sort=-clicks&tag=even", [6, 0, 8, 2, 4]],
  ["sort=clicks&search=LINK", [1, 4, 7, 2, 5, 8, 0, 6, 3]],
  ["sort=-clicks&archived=true", []],
  ["sort=-last_clicked_at", [8, 6, 5, 3, 2, 0, 7, 4, 1]],
  ["sort=last_clicked_at", [1, 4, 7, 0, 2, 3, 5, 6, 8]],
  ["sort=-last_clicked_at&tag=even&archived=false", [8, 6, 2, 0, 4]],
];
for (const [query, order] of ORDERS) {
  for (const limit of [2, 100]) {
    test(`"${query}" has its order, in pages of ${limit}`, async (t) => {
      const links = await listAll(api, `${query}&limit=${limit}`);
      t.deepEqual(
        links.map(({ id }) => ids.indexOf(id)),
        order,
      );
      t.true(links.every(({ id, clicks }) => clicks === CLICKS[ids.indexOf(id)]));
    });
  }
}

test("a link that is clicked between two pages is not listed again, and no other link is missing", async (t) => {
  const { api, ids } = await createClickedLinks();
  const first = (await api.get<PageBody>("/v1/links?sort=-clicks&limit=5")).body;
  const last = (await api.get<LinkBody>(`/v1/links/${first.data.at(-1)?.id}`)).body;
  for (let click = 0; click < 5; click++) {
    await fetch(last.short_url, { redirect: "manual", headers: A_PERSON });
  }
  const next = await api.get<PageBody>(`/v1/links?sort=-clicks&limit=5&cursor=${first.next_cursor}`);
  t.deepEqual(
    next.body.data.map(({ id }) => ids.indexOf(id)),
    [2, 7, 4, 1],
  );
});

for (const query of ["", "sort=last_clicked_at", "sort=-clicks", "sort=clicks&tag=even"]) {
  test(`a cursor of the links sorted by clicks is rejected with "${query}"`, async (t) => {
    const { body } = await api.get<PageBody>("/v1/links?sort=clicks&limit=2");
    const reply = await api.get(`/v1/links?cursor=${body.next_cursor}&${query}`);
    isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
  });
}

for (const sort of ["", "-", "title", "-title", "--clicks", "clicks,created_at"]) {
  test(`sort=${sort} is rejected`, async (t) => {
    const reply = await api.get(`/v1/links?sort=${sort}`);
    isProblem(t, reply, { status: 422, code: "invalid_sort", fields: ["sort"] });
  });
}
