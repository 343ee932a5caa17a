import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { apiAt, isProblem, type PageBody } from "../../harness/clients/api.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService, type TestService } from "../../harness/service.ts";

const COUNT = 12_000;
const SEARCHES = 10;

type Caller = ReturnType<typeof apiAt>;
let service: TestService;
let large: Caller;
let small: Caller;
let drop: () => Promise<void>;

test.before(async () => {
  const created = await createTestDatabase();
  drop = created.drop;
  service = await startTestService({
    DATABASE_URL: created.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  });
  const app = await service.createOrganization();
  const database = openDatabase(created.url);
  await storeManyLinks(database.knex, app.id, COUNT, (number) => ({
    url: `https://example.com/page/${number}`,
  }));
  await database.close();
  large = apiAt(service.url, await service.token(app));
  small = apiAt(service.url, await service.token(await service.createOrganization()));
});
test.after.always(async () => {
  await service.close();
  await drop();
});

test.serial(
  "another tenant's requests are answered between the searches of a large organization",
  async (t) => {
    const order: string[] = [];
    const searches = Array.from({ length: SEARCHES }, async (_, index) => {
      const { status } = await large.get<PageBody>(`/v1/links?search=absent-${index}`);
      order.push("search");
      t.is(status, 200);
    });
    while (order.filter((event) => event === "search").length < SEARCHES) {
      t.is((await small.get("/v1/links")).status, 200);
      order.push("other");
    }
    await Promise.all(searches);
    const last = order.lastIndexOf("search");
    const others = order.slice(0, last).filter((event) => event === "other").length;
    t.true(others >= SEARCHES, `only ${others} requests were answered before the last search`);
  },
);

test.serial("searches beyond a short queue are refused, and other tenants' searches are not", async (t) => {
  const replies = await Promise.all([
    ...Array.from({ length: 60 }, () => large.get("/v1/links?search=absent")),
    small.get("/v1/links?search=absent"),
  ]);
  const [others] = replies.splice(-1);
  t.is(others?.status, 200);
  const refused = replies.filter(({ status }) => status !== 200);
  t.true(refused.length > 0 && refused.length < 60);
  for (const reply of refused) {
    isProblem(t, reply, { status: 429, code: "rate_limited" });
    t.is(reply.headers.get("retry-after"), "1");
  }
});
