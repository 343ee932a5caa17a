import { ifDuplicate } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import { contextOf } from "../database/tables/columns.ts";
import { sealedKeys } from "../database/tables/service.ts";
import type { Encryption } from "./encryption.ts";

/** The stored keys cannot be decrypted with the configured encryption key. */
export class WrongEncryptionKey extends Error {
  override readonly name = "WrongEncryptionKey";
  constructor() {
    super("ENCRYPTION_KEY is not the key that this database was created with");
  }
}

/** Stores keys that are generated once and shared by all processes, encrypted at rest. */
export type KeyStore = ReturnType<typeof createKeyStore>;

export function createKeyStore({ knex, transaction }: Database, encryption: Encryption) {
  function decrypt(purpose: string, sealed: string): string {
    try {
      return encryption.decrypt(sealed, contextOf(sealedKeys.columns.sealed, purpose));
    } catch {
      throw new WrongEncryptionKey();
    }
  }

  function encrypt(purpose: string, key: string): string {
    return encryption.encrypt(key, contextOf(sealedKeys.columns.sealed, purpose));
  }

  async function find(purpose: string): Promise<string | undefined> {
    const row = await knex("sealed_keys").where({ purpose }).first("sealed");
    return row && decrypt(purpose, row.sealed);
  }

  return {
    /** Loads the key of a purpose; generates and stores it if there is none. @throws WrongEncryptionKey */
    async load(purpose: string, generate: () => Promise<string>): Promise<string> {
      const existing = await find(purpose);
      if (existing !== undefined) return existing;
      const sealed = encrypt(purpose, await generate());
      const inserted = knex("sealed_keys").insert({ purpose, sealed, created_at: Date.now() });
      await inserted.catch(ifDuplicate(undefined)); // another process was first, and its key is used
      return (await find(purpose)) as string;
    },

    /** Replaces a key. Of concurrent calls, each sees the result of the previous. @throws WrongEncryptionKey */
    replace: (purpose: string, change: (key: string) => string): Promise<void> =>
      transaction(async (trx) => {
        const row = await trx("sealed_keys").where({ purpose }).forUpdate().first("sealed");
        if (!row) throw new TypeError(`there is no key of the purpose ${purpose}`);
        const sealed = encrypt(purpose, change(decrypt(purpose, row.sealed)));
        const version = trx.raw("version + 1");
        await trx("sealed_keys").where({ purpose }).update({ sealed, version });
      }),

    /** Returns a text that changes with every replacement of a key. */
    async version(): Promise<string> {
      const rows = await knex("sealed_keys").orderBy("purpose").select("purpose", "version");
      return rows.map(({ purpose, version }) => `${purpose} ${version}`).join(", ");
    },

    async check(): Promise<number> {
      const rows = await knex("sealed_keys").select("purpose", "sealed");
      for (const { purpose, sealed } of rows) decrypt(purpose, sealed);
      return rows.length;
    },
  };
}
