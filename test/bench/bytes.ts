import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { engineOf } from "../../adapters/database/engine.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { apiAt } from "../harness/clients/api.ts";
import { createWebhook, startReceiver, until } from "../harness/webhooks.ts";
import { get } from "./connection.ts";
import { type NextRequest, onConnections } from "./load.ts";
import { type Seeded, seed } from "./seed.ts";
import { type Row, row } from "./table.ts";
import { exchanges, fetchToken, links, redirects, refreshes, tokens } from "./workloads.ts";
import { eachDatabase, type Ours, withDatabase } from "./workspace.ts";

const TIMES = 2000;
const CONCURRENCY = 16;
// Until clicks, their statistics and the last use of grants are stored.
const SETTLE_MS = 4000;
const CHALLENGE = "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256";

type Sizes = { bytes: number; rows: Map<string, number> };

/** What requests add to the database: rows, and bytes with all indexes. */
export const bytes = eachDatabase(async (workspace, url, name) => {
  const receiver = await startReceiver();
  workspace.defer(() => receiver.close());
  const ours = await workspace.ours(url, { env: { WEBHOOK_ALLOW_HOSTS: "127.0.0.1" } });
  return withDatabase(url, async (knex) => {
    const rows: Row[] = [];
    for (const [what, work] of Object.entries(await workloads(ours, receiver))) {
      const before = await sizesOf(knex, url);
      await work();
      await sleep(SETTLE_MS);
      const after = await sizesOf(knex, url);
      const note = difference(before, after);
      rows.push(row(`bytes per ${what}, ${name}`, (after.bytes - before.bytes) / TIMES, { note }));
    }
    return rows;
  });
});

async function workloads(
  ours: Ours,
  receiver: Awaited<ReturnType<typeof startReceiver>>,
): Promise<Record<string, () => Promise<unknown>>> {
  const { url, port, host, clients } = ours;
  const token = await fetchToken(ours);
  const [{ clientId }] = clients as [NewClient];
  const redirectUri = encodeURIComponent("https://app.example.com/callback");
  const authorization = `response_type=code&client_id=${clientId}&redirect_uri=${redirectUri}&${CHALLENGE}`;
  const slugs: string[] = [];
  const text = links(host, token)(0) as string;
  const createLink: NextRequest = () => ({
    text,
    answered: (body) => void slugs.push(JSON.parse(body).slug),
  });
  const refreshTokens: string[] = [];
  let seeded: Seeded;
  const send = (next: NextRequest, expected: number) => sendAll(port, next, expected);
  return {
    "request without a token": () => send(() => get(host, "/v1/links"), 401),
    "authorization request, not signed in": () =>
      send(() => get(host, `/oauth/authorize?${authorization}&scope=links:write`), 303),
    "token, client credentials": () => send(tokens(host, clients), 200),
    "authorization: grant and code": async () => {
      seeded = await seed(url, { codes: TIMES, port });
    },
    "code exchange: access and refresh token": () => send(exchanges(host, seeded, refreshTokens), 200),
    "refresh: access token": () => send(refreshes(host, seeded.clients[0] as NewClient, refreshTokens), 200),
    "link, with its event": () => send(createLink, 201),
    "link, with an Idempotency-Key": () =>
      send((index) => links(host, token, `Idempotency-Key: bench-${index}\r\n`)(index), 201),
    "first click of a link on a day": () =>
      send((index) => redirects(host, slugs[index] as string)(index), 302),
    "further click": () => send(redirects(host, slugs[0] as string), 302),
    "link, with its event and a delivery": async () => {
      await createWebhook(apiAt(`http://${host}`, token), receiver.url("/bench"), ["link.created"]);
      await send(createLink, 201);
      await until(async () => receiver.received("/bench").length >= TIMES || undefined);
    },
  };
}

async function sendAll(port: number, next: NextRequest, expected: number): Promise<void> {
  let index = 0;
  await onConnections(port, CONCURRENCY, async (connection) => {
    while (index < TIMES) {
      const status = await connection.ask(next(index++));
      if (status !== expected) throw new Error(`${status} instead of ${expected}`);
    }
  });
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
