import { randomBytes } from "node:crypto";
import { type Database, openDatabase } from "../../adapters/database.ts";
import { openStorage, type Storage } from "../../adapters/index.ts";
import { LINK_DEFAULTS } from "../../resources/links/links.ts";
import type { Click, LinkFields } from "../../resources/ports.ts";
import { createTestDatabase } from "./database.ts";

/** One database, as two processes have it open, and a connection of the test's own to look at it. */
export type TestStorage = {
  url: string;
  encryptionKey: Buffer;
  first: Storage;
  second: Storage;
  /** Neither of the two. */
  database: Database;
  /** Closes what is open and drops the database. */
  close(): Promise<void>;
};

/** Opens a database of one's own, migrated unless `migrated` is false. `options` go behind a SQLite address. */
export async function createTestStorage({ migrated = true, options = "" } = {}): Promise<TestStorage> {
  const { url: plain, drop } = await createTestDatabase();
  const url = plain + options;
  const encryptionKey = randomBytes(32);
  const first = openStorage(url, encryptionKey);
  const second = openStorage(url, encryptionKey);
  const database = openDatabase(url);
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

/** The fields of a link, but for `changes`. */
export function linkFields(changes: Partial<LinkFields> & Pick<LinkFields, "slug">): LinkFields {
  return {
    url: "https://example.com/",
    ...LINK_DEFAULTS,
    ...changes,
  };
}

/** A click of somebody of whom nothing is known. */
export function clickAt(at: number): Click {
  return { at, referrer: null, country: null, bot: false };
}

/** Runs something so many times at once. */
export function atOnce<T>(times: number, run: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: times }, (_, index) => run(index)));
}

/** As `atOnce`; what was thrown is a result as well. */
export function settledAtOnce<T>(times: number, run: (index: number) => Promise<T>) {
  return Promise.allSettled(Array.from({ length: times }, (_, index) => run(index)));
}
