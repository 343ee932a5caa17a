import { randomUUID } from "node:crypto";
import test from "ava";
import { apiAt } from "../harness/api.ts";
import { ask } from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";
import { clickAt } from "../harness/storage.ts";

const service = await startTestService();
const app = await service.createOrganization();
const token = await service.token(app);
const api = apiAt(service.url, token);
const { slug } = await api.createLink();
// Once before anything is counted: the first use of a secret in a minute is written down.
await service.token(app);
test.after.always(() => service.close());

// What goes on beside the redirects: who is told of a round of clicks, their count, and some seconds later where they came from.
const CLICKS =
  /^(select .organization_id. from .webhooks|update .links. set .clicks. = |insert into .click_stats)/;
// What goes with the links of one moment, in their transaction: an event each, and its deliveries. After it, a look
// at what is to be delivered.
const BATCHED =
  /^(insert into .?(events|deliveries)|BEGIN|COMMIT|select .d.\..webhook_id., .* from .deliveries. as .d.)/i;

/** The statements that something needs; clicks, and what is written in batches, apart. */
async function statementsOf(run: () => Promise<unknown>): Promise<{ direct: string[]; clicks: string[] }> {
  const all: string[] = [];
  const stop = service.storage.onStatement((sql) => all.push(sql));
  await run();
  stop();
  return {
    direct: all.filter((sql) => !CLICKS.test(sql) && !BATCHED.test(sql)),
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
    title: "the same with an Idempotency-Key: besides, the key is taken and the answer kept",
    verbs: ["select", "insert", "insert", "update"],
    run: () =>
      api.send("POST", "/v1/links", {
        json: { url: "https://example.com/" },
        headers: { "idempotency-key": randomUUID() },
      }),
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
  {
    title: "POST /oauth/introspect: the client and the token are read",
    verbs: ["select", "select"],
    run: () => ask(service, "introspect", app, { token }),
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

test.serial(
  "100 clicks of one moment, on one link, are one question and one statement, and one for the day",
  async (t) => {
    const { links } = service.storage;
    const { slug, id } = await api.createLink();
    const destination = await links.resolve(slug);
    if (!destination) throw new Error("no link");
    const waitForClicks = async () => {
      t.is((await links.list(app.id, {}, 1)).length, 1);
      const day = Math.floor(Date.now() / 86_400_000);
      return links.analytics(app.id, id, day - 1, day);
    };
    await waitForClicks(); // of other tests
    const { direct, clicks } = await statementsOf(async () => {
      await Promise.all(Array.from({ length: 100 }, () => links.click(destination, clickAt(Date.now()))));
      t.deepEqual((await waitForClicks()).referrers, [{ name: null, clicks: 100 }]);
    });
    t.deepEqual(
      clicks.map((sql) => sql.split(" ", 1)[0]),
      ["select", "update", "insert"],
    );
    t.is(direct.length, 4, "those of the list and of the analytics");
    t.is((await api.get(`/v1/links/${id}`)).body.clicks, 100);
  },
);
