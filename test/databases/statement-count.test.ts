import { randomUUID } from "node:crypto";
import test from "ava";
import type { Engine } from "../../adapters/database/engine.ts";
import { limitsOf } from "../../resources/plans.ts";
import { apiAt } from "../harness/clients/api.ts";
import { codeFor, runCodeFlow } from "../harness/clients/authorization.ts";
import { REDIRECT_URI } from "../harness/clients/authorization-request.ts";
import { postAsClient, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { clickAt, linkFields } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { freePort } from "../harness/program.ts";
import { OPERATOR, type OwnService, populate } from "../harness/service.ts";
import { createSites } from "../harness/site.ts";

export const databases = "all";

// Time stands still, because the first use of a secret in each minute is recorded.
const now = Date.now();
Date.now = () => now;

// Without a purge, deliveries and other jobs, whose statements no request causes.
const { storage, serve, close } = await createSites({ limitsOf });
const { onStatement } = storage;
const PORT = String(await freePort());
const { urls } = await serve({ PORT, BASE_URL: `http://127.0.0.1:${PORT}` });
const { base: url } = urls;
const service: OwnService = { url, urls, storage, close, onStatement, ...populate(url, storage) };
const app = await service.createOrganization();
const isUseRecorded = statement(/^select .program., .network. from .client_secret_uses/);
const token = await service.token(app);
await isUseRecorded;
const api = apiAt(service.url, token);
const { slug } = await api.createLink();
await storage.clients.setRedirectUris(app.id, [REDIRECT_URI], OPERATOR);
const user = await service.createUser([app.id]);
const codes: string[] = [];
for (let round = 0; round < 6; round++) codes.push(await codeFor(service, app, user));
const { refreshToken } = await runCodeFlow(service, app, user);
await apiAt(service.url).get(`/${slug}`);

function statement(pattern: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = onStatement((sql) => {
      if (!pattern.test(sql)) return;
      stop();
      clearTimeout(deadline);
      resolve();
    });
    const deadline = setTimeout(reject, 30_000, new Error(`no statement matched ${pattern}`));
  });
}

// Written after the redirects: the webhooks to notify of clicks, their count, and their statistics.
const CLICKS =
  /^(select .organization_id. from .webhooks|update (links set clicks|json_table)|insert into click_(counts|sources|details))/;

/** Returns the statements of `run`, and those of clicks separately, which are stored after the redirects. */
async function statementsOf(run: () => Promise<unknown>): Promise<{ direct: string[]; clicks: string[] }> {
  const all: { sql: string; transaction: string | undefined }[] = [];
  const stop = onStatement((sql, transaction) => all.push({ sql, transaction }));
  await run();
  stop();
  const clicks = all.filter(({ sql }) => CLICKS.test(sql));
  const ofClicks = new Set(clicks.flatMap(({ transaction }) => transaction ?? []));
  const direct = all.filter((one) => !clicks.includes(one) && !ofClicks.has(one.transaction ?? ""));
  return { direct: direct.map(({ sql }) => sql), clicks: clicks.map(({ sql }) => sql) };
}

const verbOf = (sql: string) => sql.split(" ", 1)[0] ?? "";

// The link, its event, its deliveries, and the quota.
const CREATE_LINK = {
  sqlite: ["update", "insert", "insert", "insert"],
  postgres: ["with"],
  mysql: ["BEGIN;", "insert", "insert", "insert", "update", "COMMIT;"],
}[engine as Engine];

const INSERT = engine === "postgres" ? "with" : "insert";

const LINK = { url: "https://example.com/" };
const EXPECTED: Record<string, [verbs: string[], run: () => Promise<unknown>]> = {
  "a client-credentials token: read the client, write the token": [
    ["select", INSERT],
    () => service.token(app),
  ],
  "POST /v1/links: read the token, write the link and what belongs to it": [
    ["select", ...CREATE_LINK],
    () => api.createLink(),
  ],
  "POST /v1/links with an Idempotency-Key: also insert the key, store the response": [
    ["select", "insert", ...CREATE_LINK, "update"],
    () => api.send("POST", "/v1/links", { json: LINK, headers: { "idempotency-key": randomUUID() } }),
  ],
  "GET /v1/links: read the token and the page": [["select", "select"], () => api.get("/v1/links")],
  // On SQLite, the link is in memory, and its version is read.
  "a redirect: read the link": [["select"], () => apiAt(service.url).get(`/${slug}`)],
  "an in-process introspection: read the token": [["select"], () => storage.findActiveToken(token)],
  "POST /oauth/introspect: read the client and the token": [
    ["select", "select"],
    () => postAsClient(service, "introspect", app, { token }),
  ],
  "the exchange of a code: read the client and the code, use it up, write two tokens": [
    ["select", "select", "update", INSERT, INSERT],
    () => redeemCode(service, app, codes.pop() as string),
  ],
  "a refresh: read the client and the token, write an access token": [
    ["select", "select", INSERT],
    () => refresh(service, app, refreshToken),
  ],
};

for (const [title, [verbs, run]] of Object.entries(EXPECTED)) {
  const count = verbs.length === 1 ? "one statement" : `${verbs.length} statements`;
  test.serial(`${count} for ${title}`, async (t) => {
    for (let round = 0; round < 3; round++) {
      const { direct } = await statementsOf(run);
      t.deepEqual(direct.map(verbOf), verbs, direct.join("\n"));
    }
  });
}

test.serial("100 concurrent clicks on a link take one query, one update and three inserts", async (t) => {
  const { links } = storage;
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
  t.deepEqual(clicks.map(verbOf), ["select", "update", "insert", "insert", "insert"]);
  t.is(direct.length, 9, `not only those of the list and the analytics: ${direct.join("\n")}`);
  t.is((await api.get(`/v1/links/${id}`)).body.clicks, 100);
});

test.serial("a link that isn't available is looked up once", async (t) => {
  // On SQLite, a lookup reads the version of links, and the link itself unless it is cached.
  const lookup = engine === "sqlite" ? /link_changes/ : /slug/;
  const create = (fields: Parameters<typeof linkFields>[0]) =>
    storage.links.create(app.id, OPERATOR, linkFields(fields));
  await create({ slug: "archived", archived: true });
  await create({ slug: "used-up", maxClicks: 0 });
  for (const unavailable of ["unknown", "archived", "used-up"]) {
    const { direct } = await statementsOf(() => apiAt(service.url).get(`/${unavailable}`));
    t.is(direct.filter((sql) => lookup.test(sql)).length, 1, unavailable);
  }
});
