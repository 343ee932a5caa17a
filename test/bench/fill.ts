import type { Knex } from "knex";
import { type Engine, engineOf } from "../../adapters/database/engine.ts";
import { DETAIL_DAYS } from "../../adapters/links/click-details.ts";
import { withDatabase } from "./workspace.ts";

// The database generates the rows itself: ten million take minutes instead of hours.
const CHUNK = 500_000;
const DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz";
const TIME_LENGTH = 9;
const ISSUED_WITHIN_MS = 30 * 86_400_000;
const PAYLOAD =
  '{"iat":1,"exp":2,"scope":"links:write","kind":"ClientCredentials","clientId":"lgc_filler","aud":"http://localhost"}';

const SIZE: Record<Engine, string> = {
  sqlite: "select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()",
  postgres: "select pg_database_size(current_database()) as bytes",
  mysql:
    "select sum(data_length + index_length) as bytes from information_schema.tables where table_schema = database()",
};

const PREPARE: Record<Engine, string[]> = {
  sqlite: ["pragma synchronous = OFF", "pragma cache_size = -1000000"],
  postgres: ["set maintenance_work_mem = '1GB'"],
  mysql: ["set sql_mode = concat(@@sql_mode, ',PIPES_AS_CONCAT')"],
};
const FINISH: Partial<Record<Engine, string>> = {
  sqlite: "pragma wal_checkpoint(TRUNCATE)",
  postgres: "vacuum analyze",
};

// A query of the numbers `i`.
const NUMBERS: Record<Engine, (first: number, last: number) => string> = {
  sqlite: (first, last) =>
    `with recursive n(i) as (select ${first} union all select i + 1 from n where i < ${last}) select i from n`,
  postgres: (first, last) => `select i from generate_series(${first}::bigint, ${last}) as i`,
  mysql: (first, last) => `select seq as i from seq_${first}_to_${last}`,
};

/** Rows of a table: the columns, and the SQL of their values for the number `i`, which goes up to `count`. */
type Rows = { table: string; values: Record<string, string>; count: number };

export type Fill = {
  tokens?: { count: number; expiresAt: number };
  links?: { count: number; organizationId: string }[];
  /** Statistics of an organization and the links above, on each of the last days. */
  clicks?: { organizationId: string; links: number; days: number };
};

/**
 * Adds tokens without a client, links with the slugs `f<number>` and their clicks to a database. Returns how long it took,
 * and its size.
 */
export function fill(url: string, { tokens, links, clicks }: Fill) {
  const start = performance.now();
  const engine = engineOf(url);
  const all: Rows[] = [];
  if (tokens) all.push(tokenRows(tokens, engine));
  if (links) all.push(linkRows(links, engine));
  if (clicks) all.push(...clickRows(clicks, engine));
  return withDatabase(url, async (knex) => {
    for (const statement of PREPARE[engine]) await knex.raw(statement);
    const insert = engine === "postgres" ? insertWithoutIndexes : insertRows;
    for (const rows of all) await insert(knex, engine, rows);
    if (FINISH[engine]) await knex.raw(FINISH[engine]);
    const result = await knex.raw(SIZE[engine]);
    const [{ bytes }] = { sqlite: result, postgres: result.rows, mysql: result[0] }[engine];
    return { seconds: (performance.now() - start) / 1000, bytes: Number(bytes) };
  });
}

/**
 * Tokens that were issued evenly over a month, under their keys (`tokenKey`), in their order,
 * in which they also expire.
 */
function tokenRows({ count, expiresAt }: NonNullable<Fill["tokens"]>, engine: Engine): Rows {
  const end = Math.min(Date.now(), expiresAt);
  const time = `(${end - ISSUED_WITHIN_MS} + i * cast(${ISSUED_WITHIN_MS} as bigint) / ${count})`;
  const digits = Array.from({ length: TIME_LENGTH }, (_, index) => {
    const unit = DIGITS.length ** (TIME_LENGTH - 1 - index);
    return `substr('${DIGITS}', cast(${time} / ${unit} % ${DIGITS.length} as integer) + 1, 1)`;
  });
  const random =
    engine === "sqlite"
      ? "substr(hex(randomblob(17)), 1, 34)"
      : "substr(md5(random()::text) || md5(random()::text), 1, 34)";
  return {
    table: "tokens",
    count,
    values: {
      id_hash: [...digits, random].join(" || "),
      kind: "'ClientCredentials'",
      client_id: "'lgc_filler'",
      payload: `'${PAYLOAD}'`,
      expires_at: `${expiresAt} + i * cast(1000 as bigint) / ${count}`,
    },
  };
}

const PADDED: Record<Engine, (number: string) => string> = {
  sqlite: (number) => `printf('%024d', ${number})`,
  postgres: (number) => `lpad((${number})::text, 24, '0')`,
  mysql: (number) => `lpad(${number}, 24, '0')`,
};

function linkRows(links: NonNullable<Fill["links"]>, engine: Engine): Rows {
  const newline = engine === "postgres" ? "chr(10)" : "char(10)";
  const owners: string[] = [];
  let count = 0;
  for (const { organizationId, count: own } of links) {
    count += own;
    owners.push(`when i <= ${count} then '${organizationId}'`);
  }
  return {
    table: "links",
    count,
    values: {
      id: `'lnk_00' || ${PADDED[engine]("i")}`,
      organization_id: `case ${owners.join(" ")} end`,
      slug: "'f' || i",
      address: "'f' || i",
      url: "'https://example.com/page/' || i",
      searched: `'https://example.com/page/' || i || ${newline} || 'f' || i || ${newline}`,
      tags: "''",
      metadata: "'{}'",
      rules: "'[]'",
      redirect_type: "302",
      created_by: "'lgc_filler'",
      created_at: "1",
      updated_at: "1",
    },
  };
}

// As many as an organization can have on a day.
const REFERRERS = 500;
// Those with the most clicks.
const TOP_LINKS = 100;
const REFERRERS_PER_LINK = 20;
// With those of the top links, about a million rows of the days that have details: older ones would be folded meanwhile.
const SOURCES = 500;
const SOURCES_PER_LINK = 106;
const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0"));
const DAY_MS = 86_400_000;

function clickRows({ organizationId, links, days }: NonNullable<Fill["clicks"]>, engine: Engine): Rows[] {
  const today = Math.floor(Date.now() / DAY_MS);
  const linkAt = (number: string) => `'lnk_00' || ${PADDED[engine](number)}`;
  const siteAt = (number: string) => `'site-' || (${number}) || '.example'`;
  const of = (perDay: number, dimension: string, name: string, link = "''", lastDays = days): Rows => ({
    table: "click_counts",
    count: perDay * lastDays,
    values: {
      organization_id: `'${organizationId}'`,
      link_id: link,
      dimension: `'${dimension}'`,
      day: `${today - lastDays + 1} + floor((i - 1) / ${perDay})`,
      name,
      clicks: "1 + i % 50",
    },
  });
  const topLink = linkAt(`1 + (i - 1) % ${TOP_LINKS}`);
  const referrer = `cast(floor((i - 1) / ${TOP_LINKS}) as integer) % ${REFERRERS_PER_LINK}`;
  const detailsOf = (perDay: number, source: string, link?: string): Rows => {
    const { values, ...rows } = of(perDay, "", "", link, Math.min(days, DETAIL_DAYS));
    const { dimension: _, name: __, ...shared } = values;
    const hours = { hour_9: "i % 25", hour_21: "1 + i % 50 - i % 25" };
    return {
      ...rows,
      table: "click_details",
      values: { ...shared, source: `'source-' || (${source})`, ...hours },
    };
  };
  const nameOf = (prefix: string, every: number, count: number) =>
    `'${prefix}' || (cast(floor(i / ${every}) as integer) % ${count})`;
  const sources = {
    organization_id: `'${organizationId}'`,
    source: "'source-' || (i - 1)",
    day: `${today}`,
    bot: "0",
    referrer: siteAt("i % 50"),
    country: nameOf("C", 1, 10),
    device: nameOf("device ", 10, 3),
    browser: nameOf("Browser ", 3, 5),
    operating_system: nameOf("System ", 3, 5),
    destination: "''",
    utm_source: nameOf("source ", 7, 6),
    utm_medium: nameOf("medium ", 7, 3),
    utm_campaign: nameOf("campaign ", 7, 60),
  };
  const hour = `substr('${HOURS.join("")}', 1 + 2 * cast((i - 1) % ${HOURS.length} as integer), 2)`;
  return [
    of(links, "clicks", "'12'", linkAt(`1 + (i - 1) % ${links}`)),
    of(REFERRERS, "referrer", siteAt(`(i - 1) % ${REFERRERS}`)),
    of(HOURS.length, "clicks", hour),
    of(TOP_LINKS, "link", topLink),
    of(TOP_LINKS * REFERRERS_PER_LINK, "referrer", siteAt(referrer), topLink),
    { table: "click_sources", count: SOURCES, values: sources },
    detailsOf(SOURCES, `(i - 1) % ${SOURCES}`),
    detailsOf(
      TOP_LINKS * SOURCES_PER_LINK,
      `cast(floor((i - 1) / ${TOP_LINKS}) as integer) % ${SOURCES_PER_LINK}`,
      topLink,
    ),
  ];
}

async function insertRows(knex: Knex, engine: Engine, { table, values, count }: Rows): Promise<void> {
  for (let first = 1; first <= count; first += CHUNK) {
    const numbers = NUMBERS[engine](first, Math.min(count, first + CHUNK - 1));
    const columns = Object.keys(values);
    await knex.raw(`insert into ${table} (${columns}) select ${Object.values(values)} from (${numbers}) n`);
  }
}

type Named = { rows: { name: string; definition: string }[] };

/** Creates the indexes again after the rows, which takes a fraction of the time. */
async function insertWithoutIndexes(knex: Knex, engine: Engine, rows: Rows): Promise<void> {
  const { table } = rows;
  const constraints = await knex.raw<Named>(
    `select conname as name, pg_get_constraintdef(oid) as definition from pg_constraint
       where conrelid = ?::regclass and contype in ('p', 'u')`,
    [table],
  );
  for (const { name } of constraints.rows) await knex.raw("alter table ?? drop constraint ??", [table, name]);
  const indexes = await knex.raw<Named>(
    "select indexname as name, indexdef as definition from pg_indexes where tablename = ?",
    [table],
  );
  for (const { name } of indexes.rows) await knex.raw("drop index ??", [name]);
  await insertRows(knex, engine, rows);
  for (const { name, definition } of constraints.rows)
    await knex.raw(`alter table ?? add constraint ?? ${definition}`, [table, name]);
  for (const { definition } of indexes.rows) await knex.raw(definition);
}
