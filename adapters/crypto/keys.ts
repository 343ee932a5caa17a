import { isDuplicate } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { Encryption } from "./encryption.ts";

/** The stored keys cannot be decrypted with the configured encryption key. */
export class WrongEncryptionKey extends Error {
  constructor() {
    super("ENCRYPTION_KEY is not the key that this database was created with");
    this.name = "WrongEncryptionKey";
  }
}

/** Stores keys that are generated once and shared by all processes, encrypted at rest. */
export type KeyStore = {
  /** Loads the key of a purpose; generates and stores it if there is none. @throws WrongEncryptionKey */
  load(purpose: string, generate: () => Promise<string>): Promise<string>;
  /**
   * Replaces the key of a purpose with what `change` returns. Of concurrent calls, each sees the result of the previous.
   * @throws WrongEncryptionKey
   */
  replace(purpose: string, change: (key: string) => string): Promise<void>;
  /** Returns a text that changes with every replacement of a key. */
  version(): Promise<string>;
  /** Decrypts every stored key and resolves to their number. @throws WrongEncryptionKey */
  check(): Promise<number>;
};

/** Creates the key store of a database. */
export function createKeyStore({ knex, transaction }: Database, encryption: Encryption): KeyStore {
  function decrypt(purpose: string, sealed: string): string {
    try {
      return encryption.decrypt(sealed, purpose);
    } catch {
      throw new WrongEncryptionKey();
    }
  }

  async function find(purpose: string): Promise<string | undefined> {
    const row = await knex("sealed_keys").where({ purpose }).first("sealed");
    return row && decrypt(purpose, row.sealed);
  }

  return {
    async load(purpose, generate) {
      const existing = await find(purpose);
      if (existing !== undefined) return existing;
      try {
        const sealed = encryption.encrypt(await generate(), purpose);
        await knex("sealed_keys").insert({ purpose, sealed, created_at: Date.now() });
      } catch (error) {
        if (!isDuplicate(error)) throw error; // another process was first, and its key is used
      }
      return (await find(purpose)) as string;
    },

    replace: (purpose, change) =>
      transaction(async (trx) => {
        const row = await trx("sealed_keys").where({ purpose }).forUpdate().first("sealed");
        if (!row) throw new TypeError(`there is no key of the purpose ${purpose}`);
        const sealed = encryption.encrypt(change(decrypt(purpose, row.sealed)), purpose);
        const version = trx.raw("version + 1");
        await trx("sealed_keys").where({ purpose }).update({ sealed, version });
      }),

    async version() {
      const rows = await knex("sealed_keys").orderBy("purpose").select("purpose", "version");
      return rows.map(({ purpose, version }) => `${purpose} ${version}`).join(", ");
    },

    async check() {
      const rows = await knex("sealed_keys").select("purpose", "sealed");
      for (const { purpose, sealed } of rows) decrypt(purpose, sealed);
      return rows.length;
    },
  };
}
