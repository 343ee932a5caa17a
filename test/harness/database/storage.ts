import { randomBytes } from "node:crypto";
import { type Database, openDatabase } from "../../../adapters/database/index.ts";
import { openStorage, type Storage } from "../../../adapters/index.ts";
import { type Click, LINK_DEFAULTS, type LinkFields } from "../../../resources/links/types.ts";
import { createStatementListeners, type OnStatement } from "../statements.ts";
import { createTestDatabase } from "./test-database.ts";

/** A storage whose statements can be heard. */
export type ObservedStorage = Storage & { onStatement: OnStatement };

/** One database, opened as by two processes, with another connection for the test. */
export type TestStorage = {
  url: string;
  encryptionKey: Buffer;
  first: ObservedStorage;
  second: ObservedStorage;
  /** A third connection, to inspect the database. */
  database: Database;
  /** Closes all connections and drops the database. */
  close(): Promise<void>;
};

// On a machine that is busy with other tests, statements and transactions would rightly be given up earlier.
const PATIENT = { timeoutMs: 60_000 };

/** Opens a database whose statements can be heard. */
export function openObserved(
  url: string,
  encryptionKeys: Parameters<typeof openStorage>[1],
  options: Parameters<typeof openStorage>[2] = PATIENT,
): ObservedStorage {
  const { observer, onStatement } = createStatementListeners();
  return { ...openStorage(url, encryptionKeys, { ...options, observer }), onStatement };
}

/** Opens a new database, migrated unless `migrated` is false. `options` are appended to a SQLite URL. */
export async function createTestStorage({ migrated = true, options = "" } = {}): Promise<TestStorage> {
  const { url: plain, drop } = await createTestDatabase({ empty: !migrated });
  const url = plain + options;
  const encryptionKey = randomBytes(32);
  const first = openObserved(url, encryptionKey);
  const second = openObserved(url, encryptionKey);
  const database = openDatabase(url, PATIENT);
  if (migrated) await first.migrate();
  return {
    url,
    encryptionKey,
    first,
    second,
    database,
    async close() {
      await Promise.all([first.close(), second.close(), database.close()]);
      await drop();
    },
  };
}

/** Returns default link fields, overridden by `changes`. */
export function linkFields(changes: Partial<LinkFields> & Pick<LinkFields, "slug">): LinkFields {
  return {
    url: "https://example.com/",
    ...LINK_DEFAULTS,
    ...changes,
  };
}

/** Returns a click of a person, with an unknown source unless it is given. */
export function clickAt(at: number, source: Partial<Click> = {}): Click {
  const unknown = { referrer: null, country: null, device: null, browser: null, operatingSystem: null };
  return { clickedAt: at, ...unknown, bot: false, ...source };
}

/** Runs a function `times` times concurrently. */
export function atOnce<T>(times: number, run: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: times }, (_, index) => run(index)));
}

/** Like `atOnce`, but a thrown error is a result too. */
export function settledAtOnce<T>(times: number, run: (index: number) => Promise<T>) {
  return Promise.allSettled(Array.from({ length: times }, (_, index) => run(index)));
}
