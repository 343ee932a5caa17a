import Sqlite from "better-sqlite3";

// SQLite generates the rows itself: ten million take minutes instead of hours.
const NUMBERS =
  "with recursive n(i) as (select cast(? as integer) union all select i + 1 from n where i < ?)";
const CHUNK = 500_000;

/** Adds tokens without a client that expire at `expiresAt`. */
export function fillTokens(file: string, count: number, expiresAt: number): void {
  fill(
    file,
    count,
    `${NUMBERS} insert into tokens (id_hash, kind, client_id, payload, expires_at)
     select substr(hex(randomblob(22)), 1, 43), 'ClientCredentials', 'lgc_filler',
            '{"iat":1,"exp":2,"scope":"links:write","kind":"ClientCredentials","clientId":"lgc_filler","aud":"http://localhost"}',
            ${expiresAt} + i % 1000 from n`,
  );
}

/** Adds links of one organization, with slugs `f<number>`. */
export function fillLinks(file: string, count: number, organizationId: string): void {
  fill(
    file,
    count,
    `${NUMBERS} insert into links (id, organization_id, slug, url, tags, metadata, redirect_type, created_by, created_at, updated_at)
     select 'lnk_00' || printf('%024d', i), '${organizationId}', 'f' || i, 'https://example.com/page/' || i, '', '{}', 302,
            'lgc_filler', 1, 1 from n`,
  );
}

function fill(file: string, count: number, sql: string): void {
  const database = new Sqlite(file);
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = OFF");
  database.pragma("cache_size = -1000000");
  const insert = database.prepare(sql);
  for (let start = 1; start <= count; start += CHUNK) insert.run(start, Math.min(count, start + CHUNK - 1));
  database.pragma("wal_checkpoint(TRUNCATE)");
  database.close();
}
