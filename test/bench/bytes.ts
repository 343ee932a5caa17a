import { setTimeout as sleep } from "node:timers/promises";
import knexFactory, { type Knex } from "knex";
import pLimit from "p-limit";
import { engineOf, knexConfig } from "../../adapters/database/engine.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { apiAt, BROWSER } from "../harness/clients/api.ts";
import { startReceiver } from "../harness/receiver.ts";
import { createWebhook, until } from "../harness/webhooks.ts";
import { ENGINE_PARTS, onEachDatabase } from "./each-database.ts";
import { seed } from "./ours.ts";
import type { Row } from "./table.ts";
import { fetchToken } from "./workloads.ts";
import type { Ours } from "./workspace.ts";

const TIMES = 2000;
const CONCURRENCY = 16;
// Until clicks, their statistics and the last use of grants are stored.
const SETTLE_MS = 4000;

type Sizes = { bytes: number; rows: Map<string, number> };

/** What requests add to the database: rows, and bytes with all indexes. */
export const byteRows = Object.assign(
  (parts: string[]) =>
    onEachDatabase(parts, async (workspace, url, name) => {
      const receiver = await startReceiver();
      const seeded = await workspace.oursOn(url);
      await seeded.server.stop();
      const ours = await workspace.restart(seeded, {
        port: seeded.port,
        env: { WEBHOOK_ALLOW_HOSTS: "127.0.0.1" },
      });
      const knex = knexFactory(knexConfig(url));
      const rows: Row[] = [];
      const measure: Measure = async (what, work) => {
        const before = await sizesOf(knex, url);
        await work();
        await sleep(SETTLE_MS);
        const after = await sizesOf(knex, url);
        rows.push({
          name: `bytes per ${what}, ${name}`,
          ours: [(after.bytes - before.bytes) / TIMES],
          note: difference(before, after),
        });
      };
      try {
        await measureAll(ours, receiver, measure);
        return rows;
      } finally {
        await knex.destroy();
        await receiver.close();
      }
    }),
  { parts: ENGINE_PARTS },
);

type Measure = (what: string, work: () => Promise<unknown>) => Promise<void>;

async function measureAll(ours: Ours, receiver: Awaited<ReturnType<typeof startReceiver>>, measure: Measure) {
  const { host, url, port } = ours;
  const client = ours.clients[0] as NewClient;
  const base = `http://${host}`;
  const token = await fetchToken(host, client);
  const api = apiAt(base, token);
  const form = (path: string, fields: Record<string, string>) =>
    expect(`${base}${path}`, 200, { method: "POST", body: new URLSearchParams(fields) });
  const credentials = { client_id: client.clientId, client_secret: client.clientSecret };

  await measure("request without a token", () => repeat(() => expect(`${base}/v1/links`, 401)));
  const authorize = new URLSearchParams({
    response_type: "code",
    client_id: client.clientId,
    redirect_uri: "https://app.example.com/callback",
    scope: "links:write",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
  await measure("authorization request, not signed in", () =>
    repeat(() => expect(`${base}/oauth/authorize?${authorize}`, 303)),
  );
  await measure("token, client credentials", () =>
    repeat(() => form("/oauth/token", { grant_type: "client_credentials", ...credentials })),
  );

  let codes: Awaited<ReturnType<typeof seed>> | undefined;
  await measure("authorization: grant and code", async () => {
    codes = await seed(url, { codes: TIMES, port });
  });
  const { codes: list = [], verifier = "", clients = [] } = codes ?? {};
  const own = { client_id: String(clients[0]?.clientId), client_secret: String(clients[0]?.clientSecret) };
  let refreshToken = "";
  await measure("code exchange: access and refresh token", () =>
    repeat(async (index) => {
      const answer = await form("/oauth/token", {
        grant_type: "authorization_code",
        code: list[index] as string,
        code_verifier: verifier,
        redirect_uri: "https://app.example.com/callback",
        ...own,
      });
      refreshToken = JSON.parse(answer).refresh_token;
    }),
  );
  await measure("refresh: access token", () =>
    repeat(() => form("/oauth/token", { grant_type: "refresh_token", refresh_token: refreshToken, ...own })),
  );

  const slugs: string[] = [];
  const createLink = async () => {
    slugs.push((await api.createLink({ url: "https://example.com/some/page?of=the&bench=1" })).slug);
  };
  await measure("link, with its event", () => repeat(createLink));
  await measure("link, with an Idempotency-Key", () =>
    repeat((index) =>
      api.send("POST", "/v1/links", {
        json: { url: "https://example.com/some/page?of=the&bench=1" },
        headers: { "idempotency-key": `bench-${index}` },
      }),
    ),
  );
  const follow = (slug: string) => expect(`${base}/${slug}`, 302, { headers: { "user-agent": BROWSER } });
  await measure("first click of a link on a day", () => repeat((index) => follow(slugs[index] as string)));
  await measure("further click", () => repeat(() => follow(slugs[0] as string)));
  await createWebhook(api, receiver.url("/bench"), ["link.created"]);
  await measure("link, with its event and a delivery", async () => {
    await repeat(createLink);
    await until(async () => receiver.received("/bench").length >= TIMES || undefined);
  });
}

async function repeat(work: (index: number) => Promise<unknown>): Promise<void> {
  const limit = pLimit(CONCURRENCY);
  await Promise.all(Array.from({ length: TIMES }, (_, index) => limit(() => work(index))));
}

async function expect(url: string, status: number, init: RequestInit = {}): Promise<string> {
  const answer = await fetch(url, { ...init, redirect: "manual" });
  const text = await answer.text();
  if (answer.status !== status) throw new Error(`${url}: ${answer.status} ${text.slice(0, 300)}`);
  return text;
}

function difference(before: Sizes, after: Sizes): string {
  const rows = [...after.rows]
    .map(([table, count]) => [table, (count - (before.rows.get(table) ?? 0)) / TIMES] as const)
    .filter(([, added]) => Math.abs(added) >= 0.01);
  return rows.map(([table, added]) => `${Number(added.toFixed(2))} ${table}`).join(", ") || "no rows";
}

const TABLES = {
  sqlite: "select name from sqlite_schema where type = 'table' and name not like 'sqlite%'",
  postgres: "select tablename as name from pg_tables where schemaname = current_schema()",
  mysql: "select table_name as name from information_schema.tables where table_schema = database()",
};

const BYTES = {
  sqlite: `select (page_count - freelist_count) * page_size as bytes
    from pragma_page_count(), pragma_freelist_count(), pragma_page_size()`,
  postgres: `select sum(pg_total_relation_size(oid)) as bytes from pg_class
    where relkind = 'r' and relnamespace = current_schema()::regnamespace`,
  // Files and indexes grow by many pages at a time, so count those in use. They are all in memory.
  mysql: `select count(*) * @@innodb_page_size as bytes from information_schema.innodb_buffer_page
    where page_type = 'INDEX' and table_name like concat(char(96), database(), char(96), ".%")`,
};

async function sizesOf(knex: Knex, url: string): Promise<Sizes> {
  const engine = engineOf(url);
  const read = async (sql: string): Promise<Record<string, unknown>[]> => {
    const result = await knex.raw(sql);
    return engine === "postgres" ? result.rows : engine === "mysql" ? result[0] : result;
  };
  const tables = (await read(TABLES[engine])).map(({ name }) => String(name));
  const rows = new Map<string, number>();
  for (const table of tables) {
    const [row] = await knex(table).count({ total: "*" });
    rows.set(table, Number(row?.total));
  }
  const [size] = await read(BYTES[engine]);
  return { bytes: Number(size?.bytes), rows };
}
