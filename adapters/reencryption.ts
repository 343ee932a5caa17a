import { encryptionContextOf as contextOfTotp } from "./accounts/second-factors/totp.ts";
import type { Encryption } from "./crypto/encryption.ts";
import { behind } from "./database/engine.ts";
import type { Database } from "./database/index.ts";
import type { Leases } from "./database/leases.ts";
import { findOutdated, renewCodes } from "./events/chain-heads.ts";
import { encryptionContext as contextOfAnswer } from "./idempotency.ts";
import { encryptionContextOf as contextOfMail } from "./mail/queue.ts";
import { encryptionContextOf as contextOfSecret, urlContextOf as contextOfUrl } from "./webhooks/row.ts";

type Connected = Pick<Database, "knex" | "engine">;
type Row = Record<string, string>;

type EncryptedColumn = {
  table: string;
  key: readonly string[];
  column: string;
  contextOf(row: Row): string;
};

/** All but what deliveries exchanged: there are millions of them, and each is deleted after 30 days. */
export const ENCRYPTED_COLUMNS: readonly EncryptedColumn[] = [
  { table: "sealed_keys", key: ["purpose"], column: "sealed", contextOf: ({ purpose = "" }) => purpose },
  ...["secret", "previous_secret"].map((column) => ({
    table: "webhooks",
    key: ["id"],
    column,
    contextOf: ({ id = "" }: Row) => contextOfSecret(id),
  })),
  { table: "webhooks", key: ["id"], column: "url", contextOf: ({ id = "" }) => contextOfUrl(id) },
  {
    table: "idempotency_keys",
    key: ["organization_id", "key_hash"],
    column: "answer",
    contextOf: ({ organization_id = "", key_hash = "" }) => contextOfAnswer({ organization_id, key_hash }),
  },
  {
    table: "totp_secrets",
    key: ["user_id"],
    column: "secret",
    contextOf: ({ user_id = "" }) => contextOfTotp(user_id),
  },
  { table: "mails", key: ["id"], column: "secret", contextOf: ({ id = "" }) => contextOfMail(id) },
];

/** What a re-encryption did: the number of values, and of those that no configured key decrypts. */
export type Reencrypted = { reencrypted: number; unreadable: number };

const BATCH = 100;
const LEASE = "reencrypt";
// How long a process that died while re-encrypting blocks the others.
const LEASE_MS = 30_000;

/**
 * Encrypts again what an older key encrypted, in one process at a time; undefined in the others. Reports how many values
 * are done.
 */
export async function reencrypt(
  database: Database,
  encryption: Encryption,
  leases: Leases,
  stop?: AbortSignal,
  onProgress?: (done: number) => void,
): Promise<Reencrypted | undefined> {
  if (!(await leases.acquire(LEASE, LEASE_MS))) return undefined;
  const { knex } = database;
  let reencrypted = 0;
  let unreadable = 0;
  try {
    reencrypted += await renewCodes(database, encryption);
    onProgress?.(reencrypted);
    for await (const { field, row } of outdated(database, encryption)) {
      if (stop?.aborted) break;
      const ciphertext = row[field.column] as string;
      const context = field.contextOf(row);
      const text = tryDecrypt(encryption, ciphertext, context);
      if (text === undefined) {
        unreadable++;
        continue;
      }
      const replaced = await knex(field.table)
        .where({ ...keyOf(field, row), [field.column]: ciphertext })
        .update({ [field.column]: encryption.encrypt(text, context) });
      reencrypted += replaced;
      onProgress?.(reencrypted + unreadable);
      if (reencrypted % BATCH === 0) await leases.acquire(LEASE, LEASE_MS);
    }
    return { reencrypted, unreadable };
  } finally {
    await leases.release(LEASE);
  }
}

/** Counts the values that were encrypted with an older key than the first. */
export async function countOutdated(database: Connected, encryption: Encryption): Promise<number> {
  let count = (await findOutdated(database, encryption)).length;
  for await (const _ of outdated(database, encryption)) count++;
  return count;
}

type Outdated = { field: EncryptedColumn; row: Row };

async function* outdated(database: Connected, encryption: Encryption): AsyncGenerator<Outdated> {
  for (const field of ENCRYPTED_COLUMNS) {
    for await (const row of rowsOf(database, field)) {
      const value = row[field.column] as string;
      if (!encryption.isCurrent(value, field.contextOf(row))) yield { field, row };
    }
  }
}

async function* rowsOf({ knex, engine }: Connected, field: EncryptedColumn): AsyncGenerator<Row> {
  const { table, key, column } = field;
  let last: Row | undefined;
  do {
    const query = knex(table)
      .whereNotNull(column)
      .orderBy([...key])
      .limit(BATCH);
    if (last) query.whereRaw(...behind(engine, key, Object.values(keyOf(field, last))));
    const rows: Row[] = await query.select([...key, column]);
    yield* rows;
    last = rows.length === BATCH ? rows.at(-1) : undefined;
  } while (last);
}

function keyOf({ key }: EncryptedColumn, row: Row): Row {
  return Object.fromEntries(key.map((name) => [name, row[name] as string]));
}

function tryDecrypt(encryption: Encryption, ciphertext: string, context: string): string | undefined {
  try {
    return encryption.decrypt(ciphertext, context);
  } catch {
    return undefined;
  }
}
