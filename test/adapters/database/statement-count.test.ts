import { randomUUID } from "node:crypto";
import test from "ava";
import type { Engine } from "../../../adapters/database/engine.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import { codeFor, postAsClient, redeemCode, refresh, runCodeFlow } from "../../harness/clients/oauth.ts";
import { clickAt } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const token = await service.token(app);
const api = apiAt(service.url, token);
const { slug } = await api.createLink();
await service.storage.clients.setRedirectUris(app.id, [REDIRECT_URI], OPERATOR);
const user = await service.createUser([app.id]);
const codes: string[] = [];
for (let round = 0; round < 6; round++) codes.push(await codeFor(service, app, user));
const { refreshToken } = await runCodeFlow(service, app, user);
// On SQLite, creating a link would chain the events of these flows.
await service.storage.auditChain.append();
// Requested once before counting, because the first use of a secret in a minute is recorded.
await service.token(app);
await apiAt(service.url).get(`/${slug}`);
test.after.always(() => service.close());

// Written after the redirects: the webhooks to notify of clicks, their count, and seconds later their statistics.
const CLICKS =
  /^(select .organization_id. from .webhooks|update .links. set .clicks. = |insert into .click_stats)/;
// After a commit that may have added deliveries, the queue looks for due ones.
const QUEUE = /^select .d.\..webhook_id., .* from .deliveries. as .d./;

// The periodic purge of expired rows, search for links to erase or index and for logged clicks, and check of the keys, which
// start seconds after the service.
const PURGE =
  /[`"]organization_usage[`"]|.leases.|.sealed_keys.|.knex_migrations.|from .sign_in_failures.|^select 1 from click_log|.expires_at. <= |pg_class|max\(expires_at\)/;
// The background job that chains new entries of the audit log.
const CHAIN =
  /[`"]audit_chains[`"]|unchained = 1|[`"].* seq is null|.seq. is null|^with v \(|^update events e join|^select .id., .plan. from .organizations. where .id. in/;

const ENDS = /^(BEGIN|COMMIT)/;
const isOther = (sql: string) => [CLICKS, QUEUE, PURGE, CHAIN].some((pattern) => pattern.test(sql));

/** Returns the statements of `run` without those in the background, and those of clicks separately. */
async function statementsOf(run: () => Promise<unknown>): Promise<{ direct: string[]; clicks: string[] }> {
  const all: { sql: string; transaction: string | undefined }[] = [];
  const stop = service.storage.onStatement((sql, transaction) => all.push({ sql, transaction }));
  await run();
  stop();
  const others = all.filter(({ sql }) => isOther(sql));
  // The background job may begin or end its transaction meanwhile.
  const own = new Set(
    all.filter(({ sql }) => !isOther(sql) && !ENDS.test(sql)).map((one) => one.transaction),
  );
  for (const { transaction } of others) if (transaction) own.delete(transaction);
  return {
    direct: all
      .filter(({ sql, transaction }) => !isOther(sql) && (!transaction || own.has(transaction)))
      .map(({ sql }) => sql),
    clicks: others.filter(({ sql }) => CLICKS.test(sql)).map(({ sql }) => sql),
  };
}

// The link, its event with its place in the audit log, its deliveries, and the quota. The groups of SQLite's writer share
// what they read and store about the organization, and their transaction. Without a webhook, they insert no deliveries.
const CREATE_LINK = {
  sqlite: ["insert", "select", "select", "insert", "select", "select", "insert", "update"],
  postgres: ["with"],
  mysql: ["BEGIN;", "insert", "insert", "insert", "update", "COMMIT;"],
}[engine as Engine];

const INSERT = engine === "postgres" ? "with" : "insert";

const EXPECTED: { title: string; verbs: string[]; run: () => Promise<unknown> }[] = [
  {
    title: "a client-credentials token: read the client, write the token",
    verbs: ["select", INSERT],
    run: () => service.token(app),
  },
  {
    title: "POST /v1/links: read the token, write the link and what belongs to it",
    verbs: ["select", ...CREATE_LINK],
    run: () => api.createLink(),
  },
  {
    title: "POST /v1/links with an Idempotency-Key: also insert the key, store the response",
    verbs: ["select", "insert", ...CREATE_LINK, "update"],
    run: () =>
      api.send("POST", "/v1/links", {
        json: { url: "https://example.com/" },
        headers: { "idempotency-key": randomUUID() },
      }),
  },
  {
    title: "GET /v1/links: read the token and the page",
    verbs: ["select", "select"],
    run: () => api.get("/v1/links"),
  },
  {
    // On SQLite, the link is in memory, and its version is read.
    title: "a redirect: read the link",
    verbs: ["select"],
    run: () => apiAt(service.url).get(`/${slug}`),
  },
  {
    title: "an in-process introspection: read the token",
    verbs: ["select"],
    run: () => service.storage.findActiveToken(token),
  },
  {
    title: "POST /oauth/introspect: read the client and the token",
    verbs: ["select", "select"],
    run: () => postAsClient(service, "introspect", app, { token }),
  },
  {
    title: "the exchange of a code: read the client and the code, use it up, write two tokens",
    verbs: ["select", "select", "update", INSERT, INSERT],
    run: () => redeemCode(service, app, codes.pop() as string),
  },
  {
    title: "a refresh: read the client and the token, write an access token",
    verbs: ["select", "select", INSERT],
    run: () => refresh(service, app, refreshToken),
  },
];

expectStatements("");

if (engine === "postgres") {
  test.serial("PostgreSQL: tables are partitioned", async (t) => {
    const tables = ["tokens", "deliveries", "events"];
    t.deepEqual((await service.storage.partition(tables)).partitioned, tables);
  });
  expectStatements("PostgreSQL, partitioned: ");
}

function expectStatements(where: string): void {
  for (const { title, verbs, run } of EXPECTED) {
    const count = verbs.length === 1 ? "one statement" : `${verbs.length} statements`;
    test.serial(`${where}${count} for ${title}`, async (t) => {
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
}

test.serial(
  "100 concurrent clicks on a link take one query, one update and one insert of statistics",
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
    t.is(direct.length, 4, `not only those of the list and the analytics: ${direct.join("\n")}`);
    t.is((await api.get(`/v1/links/${id}`)).body.clicks, 100);
  },
);
