import type { Knex } from "knex";
import knexFactory from "knex";
import { type Engine, engineOf, knexConfig } from "../../adapters/database/engine.ts";

// The database generates the rows itself: ten million take minutes instead of hours.
const CHUNK = 500_000;
const DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz";
const TIME_LENGTH = 9;
const ISSUED_WITHIN_MS = 30 * 86_400_000;
const PAYLOAD = JSON.stringify({
  iat: 1,
  exp: 2,
  scope: "links:write",
  kind: "ClientCredentials",
  clientId: "lgc_filler",
  aud: "http://localhost",
});

// A statement may add or count millions of rows.
const STATEMENT_MS = 3_600_000;

const SIZE: Record<Engine, string> = {
  sqlite: "select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()",
  postgres: "select pg_database_size(current_database()) as bytes",
  mysql:
    "select sum(data_length + index_length) as bytes from information_schema.tables where table_schema = database()",
};

/** Rows of a table: the columns, and the SQL of their values for the number `i`. */
type Rows = { table: string; values: Record<string, string> };

/** How many rows of each table to add. */
export type Fill = {
  tokens?: { count: number; expiresAt: number };
  links?: { count: number; organizationId: string }[];
  /** Statistics of an organization and the links above, on each of the last days. */
  clicks?: { organizationId: string; links: number; days: number };
};

/** Adds tokens without a client, links with the slugs `f<number>` and their clicks to a database. Returns how long it took, and its size. */
export async function fill(
  url: string,
  { tokens, links, clicks }: Fill,
): Promise<{ seconds: number; bytes: number }> {
  const start = performance.now();
  const engine = engineOf(url);
  const isSqlite = engine === "sqlite";
  const knex = knexFactory({ ...knexConfig(url, { timeoutMs: STATEMENT_MS }), pool: { min: 1, max: 1 } });
  try {
    const insert = await prepareInsert(knex, engine);
    if (tokens) await insert(tokenRows(tokens.count, tokens.expiresAt, isSqlite), tokens.count);
    if (links) await insert(linkRows(links, engine), Math.max(...numbersOf(links)));
    if (clicks) {
      await insert(linkClickRows(clicks, engine), clicks.links * clicks.days);
      await insert(organizationClickRows(clicks), REFERRERS * clicks.days);
      await insert(hourRows(clicks), HOURS * clicks.days);
      await insert(topLinkRows(clicks, engine), TOP_LINKS * clicks.days);
      await insert(topReferrerRows(clicks, engine), TOP_LINKS * REFERRERS_PER_LINK * clicks.days);
    }
    if (engine === "postgres") await knex.raw("vacuum analyze");
    const result = await knex.raw(SIZE[engine]);
    const [{ bytes }] = { sqlite: result, postgres: result.rows, mysql: result[0] }[engine];
    return { seconds: (performance.now() - start) / 1000, bytes: Number(bytes) };
  } finally {
    await knex.destroy();
  }
}

/**
 * Tokens that were issued evenly over a month, under their keys (`tokenKey`), in their order,
 * in which they also expire.
 */
function tokenRows(count: number, expiresAt: number, isSqlite: boolean): Rows {
  const end = Math.min(Date.now(), expiresAt);
  const time = `(${end - ISSUED_WITHIN_MS} + i * cast(${ISSUED_WITHIN_MS} as bigint) / ${count})`;
  const digits = Array.from({ length: TIME_LENGTH }, (_, index) => {
    const unit = DIGITS.length ** (TIME_LENGTH - 1 - index);
    return `substr('${DIGITS}', cast(${time} / ${unit} % ${DIGITS.length} as integer) + 1, 1)`;
  });
  const random = isSqlite
    ? "substr(hex(randomblob(17)), 1, 34)"
    : "substr(md5(random()::text) || md5(random()::text), 1, 34)";
  return {
    table: "tokens",
    values: {
      id_hash: [...digits, random].join(" || "),
      kind: "'ClientCredentials'",
      client_id: "'lgc_filler'",
      payload: `'${PAYLOAD}'`,
      expires_at: `${expiresAt} + i * cast(1000 as bigint) / ${count}`,
    },
  };
}

/** Returns the number of the last link of each organization. */
function numbersOf(links: { count: number }[]): number[] {
  let sum = 0;
  return links.map(({ count }) => {
    sum += count;
    return sum;
  });
}

const PADDED: Record<Engine, (number: string) => string> = {
  sqlite: (number) => `printf('%024d', ${number})`,
  postgres: (number) => `lpad((${number})::text, 24, '0')`,
  mysql: (number) => `lpad(${number}, 24, '0')`,
};

function linkRows(links: { count: number; organizationId: string }[], engine: Engine): Rows {
  const newline = engine === "postgres" ? "chr(10)" : "char(10)";
  const last = numbersOf(links);
  const owners = links.map(
    ({ organizationId }, index) => `when i <= ${last[index]} then '${organizationId}'`,
  );
  return {
    table: "links",
    values: {
      id: `'lnk_00' || ${PADDED[engine]("i")}`,
      organization_id: `case ${owners.join(" ")} end`,
      slug: "'f' || i",
      url: "'https://example.com/page/' || i",
      searched: `'https://example.com/page/' || i || ${newline} || 'f' || i || ${newline}`,
      tags: "''",
      metadata: "'{}'",
      redirect_type: "302",
      created_by: "'lgc_filler'",
      created_at: "1",
      updated_at: "1",
    },
  };
}

type Clicks = NonNullable<Fill["clicks"]>;

// As many as an organization can have on a day.
const REFERRERS = 500;
// Those with the most clicks.
const TOP_LINKS = 100;
const REFERRERS_PER_LINK = 20;
const HOURS = 24;
const DAY_MS = 86_400_000;

const linkAt = (engine: Engine, number: string) => `'lnk_00' || ${PADDED[engine](number)}`;

/** One row per link and day. */
function linkClickRows({ organizationId, links, days }: Clicks, engine: Engine): Rows {
  const link = linkAt(engine, `1 + (i - 1) % ${links}`);
  return clickRows(organizationId, link, "clicks", "'12'", dayOf(links, days));
}

function organizationClickRows({ organizationId, days }: Clicks): Rows {
  const name = `'site-' || ((i - 1) % ${REFERRERS}) || '.example'`;
  return clickRows(organizationId, "''", "referrer", name, dayOf(REFERRERS, days));
}

function topLinkRows({ organizationId, days }: Clicks, engine: Engine): Rows {
  const name = linkAt(engine, `1 + (i - 1) % ${TOP_LINKS}`);
  return clickRows(organizationId, "''", "link", name, dayOf(TOP_LINKS, days));
}

function topReferrerRows({ organizationId, days }: Clicks, engine: Engine): Rows {
  const link = linkAt(engine, `1 + (i - 1) % ${TOP_LINKS}`);
  const number = `cast(floor((i - 1) / ${TOP_LINKS}) as integer) % ${REFERRERS_PER_LINK}`;
  const name = `'site-' || (${number}) || '.example'`;
  return clickRows(organizationId, link, "referrer", name, dayOf(TOP_LINKS * REFERRERS_PER_LINK, days));
}

function hourRows({ organizationId, days }: Clicks): Rows {
  const name = `substr('${Array.from({ length: HOURS }, (_, hour) => String(hour).padStart(2, "0")).join("")}', 1 + 2 * cast((i - 1) % ${HOURS} as integer), 2)`;
  return clickRows(organizationId, "''", "clicks", name, dayOf(HOURS, days));
}

function clickRows(
  organizationId: string,
  link_id: string,
  dimension: string,
  name: string,
  day: string,
): Rows {
  const organization_id = `'${organizationId}'`;
  return {
    table: "click_counts",
    values: { organization_id, link_id, dimension: `'${dimension}'`, day, name, clicks: "1 + i % 50" },
  };
}

/** Returns the SQL of a day, of which each has as many rows. */
function dayOf(rowsPerDay: number, days: number): string {
  const today = Math.floor(Date.now() / DAY_MS);
  return `${today - days + 1} + floor((i - 1) / ${rowsPerDay})`;
}

type Insert = (rows: Rows, count: number) => Promise<void>;

async function prepareInsert(knex: Knex, engine: Engine): Promise<Insert> {
  if (engine === "sqlite") return prepareSqlite(knex);
  if (engine === "postgres") return insertWithoutIndexes(knex);
  await knex.raw("set sql_mode = concat(@@sql_mode, ',PIPES_AS_CONCAT')");
  return async ({ table, values }, count) => {
    const sql = `insert into ${table} (${Object.keys(values)}) select ${Object.values(values)} from`;
    for (let start = 1; start <= count; start += CHUNK)
      await knex.raw(`${sql} (select seq as i from seq_${start}_to_${Math.min(count, start + CHUNK - 1)}) n`);
  };
}

async function prepareSqlite(knex: Knex): Promise<Insert> {
  await knex.raw("pragma synchronous = OFF");
  await knex.raw("pragma cache_size = -1000000");
  const numbers =
    "with recursive n(i) as (select cast(? as integer) union all select i + 1 from n where i < ?)";
  return async ({ table, values }, count) => {
    const sql = `insert into ${table} (${Object.keys(values)}) ${numbers} select ${Object.values(values)} from n`;
    for (let start = 1; start <= count; start += CHUNK)
      await knex.raw(sql, [start, Math.min(count, start + CHUNK - 1)]);
    await knex.raw("pragma wal_checkpoint(TRUNCATE)");
  };
}

/** Creates the indexes again after the rows, which takes a fraction of the time. */
function insertWithoutIndexes(knex: Knex): Insert {
  return async ({ table, values }, count) => {
    const { rows: constraints } = await knex.raw(
      `select conname as name, pg_get_constraintdef(oid) as definition from pg_constraint
       where conrelid = ?::regclass and contype in ('p', 'u')`,
      [table],
    );
    for (const { name } of constraints) await knex.raw("alter table ?? drop constraint ??", [table, name]);
    const { rows: indexes } = await knex.raw(
      "select indexname as name, indexdef as definition from pg_indexes where tablename = ?",
      [table],
    );
    for (const { name } of indexes) await knex.raw("drop index ??", [name]);
    await knex.raw(
      `insert into ${table} (${Object.keys(values)}) select ${Object.values(values)} from generate_series(1, ?::bigint) as n(i)`,
      [count],
    );
    await knex.raw("set maintenance_work_mem = '1GB'");
    for (const { name, definition } of constraints)
      await knex.raw(`alter table ?? add constraint ?? ${definition}`, [table, name]);
    for (const { definition } of indexes) await knex.raw(definition);
  };
}
