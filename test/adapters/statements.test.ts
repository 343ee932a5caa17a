import test from "ava";
import { apiAt } from "../harness/api.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const token = await service.token(app);
const api = apiAt(service.url, token);
const { slug } = await api.createLink();
// Once before anything is counted: the first use of a secret in a minute is written down.
await service.token(app);
test.after.always(() => service.close());

const CLICKS = /^update .links. set .clicks. = /;

/** The statements that something needs, clicks apart. */
async function statementsOf(run: () => Promise<unknown>): Promise<{ direct: string[]; clicks: string[] }> {
  const all: string[] = [];
  const stop = service.storage.onStatement((sql) => all.push(sql));
  await run();
  stop();
  return {
    direct: all.filter((sql) => !CLICKS.test(sql)),
    clicks: all.filter((sql) => CLICKS.test(sql)),
  };
}

const EXPECTED: { title: string; verbs: string[]; run: () => Promise<unknown> }[] = [
  {
    title: "a client-credentials token: the client is read, the token written",
    verbs: ["select", "insert"],
    run: () => service.token(app),
  },
  {
    title: "POST /v1/links: the token is read, the link written",
    verbs: ["select", "insert"],
    run: () => api.createLink(),
  },
  {
    title: "GET /v1/links: the token and the page are read",
    verbs: ["select", "select"],
    run: () => api.get("/v1/links"),
  },
  { title: "a redirect: the link is read", verbs: ["select"], run: () => apiAt(service.url).get(`/${slug}`) },
  {
    title: "a question about a token within the process: one read",
    verbs: ["select"],
    run: () => service.storage.findActiveToken(token),
  },
];

for (const { title, verbs, run } of EXPECTED) {
  const count = verbs.length === 1 ? "one statement" : `${verbs.length} statements`;
  test.serial(`${count} for ${title}`, async (t) => {
    for (let round = 0; round < 3; round++) {
      const { direct } = await statementsOf(run);
      t.deepEqual(
        direct.map((sql) => sql.split(" ", 1)[0]),
        verbs,
        direct.join("\n"),
      );
    }
  });
}

test.serial("100 clicks of one moment, on one link, are written in one statement", async (t) => {
  const { links } = service.storage;
  const { slug, id } = await api.createLink();
  const destination = await links.resolve(slug);
  if (!destination) throw new Error("no link");
  await links.list(app.id, {}, 1); // waits for the clicks of other tests
  const { direct, clicks } = await statementsOf(async () => {
    await Promise.all(Array.from({ length: 100 }, () => links.click(destination, Date.now())));
    t.is((await links.list(app.id, {}, 1))[0]?.clicks, 100); // waits for these
  });
  t.deepEqual([direct.length, clicks.length], [1, 1]);
  t.is((await api.get(`/v1/links/${id}`)).body.clicks, 100);
});
