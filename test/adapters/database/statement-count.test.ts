import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import test from "ava";
import type { Engine } from "../../../adapters/database/engine.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { createApp } from "../../../server/app.ts";
import { appPolicyCheckOf } from "../../../server/clients/app-policy.ts";
import { encryptionKeys } from "../../../server/keys/encryption-keys.ts";
import { createLog } from "../../../server/log.ts";
import { createMetrics } from "../../../server/observability/metrics.ts";
import { prepareStorage } from "../../../server/process/prepare.ts";
import { createRateLimitStore } from "../../../server/rate-limits/store.ts";
import { readSettings } from "../../../server/settings/config.ts";
import { publicUrlsOf } from "../../../server/settings/public-urls.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import { codeFor, postAsClient, redeemCode, refresh, runCodeFlow } from "../../harness/clients/oauth.ts";
import { clickAt, openObserved } from "../../harness/database/storage.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { freePort } from "../../harness/port.ts";
import { type OwnService, populate } from "../../harness/service.ts";

export const databases = "all";

// Time stands still, because the first use of a secret in each minute is recorded.
const now = Date.now();
Date.now = () => now;

const { service, close } = await serveRequestsOnly();
const app = await service.createOrganization();
const isUseRecorded = statement(/^select .program., .network. from .client_secret_uses/);
const token = await service.token(app);
await isUseRecorded;
const api = apiAt(service.url, token);
const { slug } = await api.createLink();
await service.storage.clients.setRedirectUris(app.id, [REDIRECT_URI], OPERATOR);
const user = await service.createUser([app.id]);
const codes: string[] = [];
for (let round = 0; round < 6; round++) codes.push(await codeFor(service, app, user));
const { refreshToken } = await runCodeFlow(service, app, user);
await apiAt(service.url).get(`/${slug}`);
test.after.always(close);

/** Serves an application without a purge, deliveries and other jobs, whose statements no request causes. */
async function serveRequestsOnly(): Promise<{ service: OwnService; close(): Promise<void> }> {
  const database = await createTestDatabase();
  const port = await freePort();
  const settings = readSettings({
    PORT: String(port),
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    RATE_LIMIT: "off",
    LOG_LEVEL: "silent",
  });
  const log = createLog("silent");
  const urls = publicUrlsOf(settings, port);
  const appPolicyCheck = appPolicyCheckOf(settings);
  const storage = openObserved(database.url, encryptionKeys(settings), { appPolicyCheck, limitsOf });
  const keys = await prepareStorage(settings, storage, log);
  const unused = () => Promise.reject(new Error("nothing is fetched"));
  const { listener } = createApp({
    settings,
    urls,
    storage,
    appPolicyCheck,
    keys,
    rateLimitStore: await createRateLimitStore(settings, log),
    metrics: createMetrics(log),
    log,
    fetch: unused,
    fetchConfigured: unused,
    fetchFromProvider: unused,
  });
  const server = createServer(listener).listen(port, "localhost");
  await once(server, "listening");
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await storage.close();
    await database.drop();
  };
  const { onStatement } = storage;
  return {
    service: { url: urls.base, urls, storage, close, onStatement, ...populate(urls.base, storage) },
    close,
  };
}

/** Resolves when a statement that matches has been sent. Rejects after 30 seconds. */
function statement(pattern: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = service.onStatement((sql) => {
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
  /^(select .organization_id. from .webhooks|update (links set clicks|json_table)|insert into click_counts)/;

/** Returns the statements of `run`, and those of clicks separately, which are stored after the redirects. */
async function statementsOf(run: () => Promise<unknown>): Promise<{ direct: string[]; clicks: string[] }> {
  const all: { sql: string; transaction: string | undefined }[] = [];
  const stop = service.onStatement((sql, transaction) => all.push({ sql, transaction }));
  await run();
  stop();
  const clicks = all.filter(({ sql }) => CLICKS.test(sql));
  const ofClicks = new Set(clicks.flatMap(({ transaction }) => transaction ?? []));
  const direct = all.filter((one) => !clicks.includes(one) && !ofClicks.has(one.transaction ?? ""));
  return { direct: direct.map(({ sql }) => sql), clicks: clicks.map(({ sql }) => sql) };
}

// The link, its event, its deliveries, and the quota.
const CREATE_LINK = {
  sqlite: ["update", "insert", "insert", "insert"],
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
    t.is(direct.length, 5, `not only those of the list and the analytics: ${direct.join("\n")}`);
    t.is((await api.get(`/v1/links/${id}`)).body.clicks, 100);
  },
);
