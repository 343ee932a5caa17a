import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";
import type { Seal } from "./seal.ts";

/** The stored keys cannot be opened with the encryption key that was given. */
export class WrongEncryptionKey extends Error {
  constructor() {
    super("ENCRYPTION_KEY is not the one that this database was made with");
    this.name = "WrongEncryptionKey";
  }
}

/** Keys that are made once and shared by every process, encrypted at rest. */
export type KeyStore = {
  /** The key of that purpose; made and stored if there is none yet. @throws WrongEncryptionKey */
  load(purpose: string, make: () => Promise<string>): Promise<string>;
  /** Opens every key that is stored; resolves to their number. @throws WrongEncryptionKey */
  check(): Promise<number>;
};

/** The keys of a database, opened with `seal`. */
export function createKeyStore({ knex }: Database, seal: Seal): KeyStore {
  function open(purpose: string, sealed: string): string {
    try {
      return seal.open(sealed, purpose);
    } catch {
      throw new WrongEncryptionKey();
    }
  }

  async function find(purpose: string): Promise<string | undefined> {
    const row = await knex("sealed_keys").where({ purpose }).first("sealed");
    return row && open(purpose, row.sealed);
  }

  return {
    async load(purpose, make) {
      const known = await find(purpose);
      if (known !== undefined) return known;
      try {
        const sealed = seal.close(await make(), purpose);
        await knex("sealed_keys").insert({ purpose, sealed, created_at: Date.now() });
      } catch (error) {
        if (!isDuplicate(error)) throw error; // another process was first: its key is everybody's
      }
      return (await find(purpose)) as string;
    },

    async check() {
      const rows = await knex("sealed_keys").select("purpose", "sealed");
      for (const { purpose, sealed } of rows) open(purpose, sealed);
      return rows.length;
    },
  };
}
