import type { ActiveToken, LinkStore } from "../resources/ports.ts";
import { type AccountStore, createAccountStore } from "./accounts.ts";
import { type ClientStore, createClientStore } from "./clients.ts";
import { type Database, openDatabase } from "./database.ts";
import { createGrantStore, type GrantStore } from "./grants.ts";
import { createTokenReader } from "./introspection.ts";
import { createKeyStore, type KeyStore } from "./keys.ts";
import { createLinkStore } from "./links.ts";
import { createOidcAdapter } from "./oidc/index.ts";
import { createOrganizationStore, type OrganizationStore } from "./organizations.ts";
import { createSeal } from "./seal.ts";
import { type Deleted, sweep } from "./sweep.ts";

/** Everything that is kept, over one database. */
export type Storage = {
  accounts: AccountStore;
  clients: ClientStore;
  grants: GrantStore;
  keys: KeyStore;
  links: LinkStore;
  organizations: OrganizationStore;
  /** oidc-provider's storage contract: the name of a model → its adapter. */
  oidcAdapter: ReturnType<typeof createOidcAdapter>;
  findActiveToken(token: string): Promise<ActiveToken | undefined>;
  sweep(): Promise<Deleted>;
} & Pick<Database, "engine" | "migrate" | "pendingMigrations" | "close">;

/**
 * Opens the database behind a `DATABASE_URL`.
 * @param encryptionKey 32 bytes; what cannot be hashed is encrypted with it
 */
export function openStorage(url: string, encryptionKey: Uint8Array): Storage {
  const database = openDatabase(url);
  const clients = createClientStore(database);
  return {
    accounts: createAccountStore(database),
    clients,
    grants: createGrantStore(database),
    keys: createKeyStore(database, createSeal(encryptionKey)),
    links: createLinkStore(database),
    organizations: createOrganizationStore(database),
    oidcAdapter: createOidcAdapter(database, clients),
    findActiveToken: createTokenReader(database),
    sweep: () => sweep(database),
    engine: database.engine,
    migrate: database.migrate,
    pendingMigrations: database.pendingMigrations,
    close: database.close,
  };
}
