import { setTimeout as sleep } from "node:timers/promises";
import type { ActiveToken, LinkStore } from "../resources/ports.ts";
import { type AccountStore, createAccountStore } from "./accounts.ts";
import { createClickCounter } from "./clicks.ts";
import { type ClientStore, createClientStore } from "./clients.ts";
import { type Database, openDatabase } from "./database.ts";
import { createGrantStore, type GrantStore } from "./grants.ts";
import { createTokenReader } from "./introspection.ts";
import { createKeyStore, type KeyStore } from "./keys.ts";
import { createLeases } from "./leases.ts";
import { createLinkStore } from "./links.ts";
import { createOidcAdapter } from "./oidc/index.ts";
import { createOrganizationStore, type OrganizationStore } from "./organizations.ts";
import { createSeal } from "./seal.ts";
import { type Deleted, sweep } from "./sweep.ts";
import { explained } from "./unavailable.ts";

// How long a stop waits for a database that is away to take the last clicks.
const LAST_CLICKS_MS = 5000;

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
  /** Removes expired rows; nothing while another process does. */
  sweep(): Promise<Deleted | undefined>;
} & Pick<Database, "engine" | "migrate" | "pendingMigrations" | "onStatement" | "close">;

/**
 * Opens the database behind a `DATABASE_URL`.
 * @param encryptionKey 32 bytes; what cannot be hashed is encrypted with it
 */
export function openStorage(url: string, encryptionKey: Uint8Array): Storage {
  const database = openDatabase(url);
  const leases = createLeases(database);
  const clicks = createClickCounter(database);
  const clients = explained(createClientStore(database), "ofOrganization");
  return {
    accounts: explained(createAccountStore(database), "find", "findByUsername", "findByResetToken"),
    clients,
    grants: explained(createGrantStore(database), "standing"),
    keys: explained(createKeyStore(database, createSeal(encryptionKey)), "check"),
    links: explained(createLinkStore(database, clicks), "find", "list", "count"),
    organizations: explained(createOrganizationStore(database), "find", "list", "ofUser"),
    oidcAdapter: createOidcAdapter(database, clients),
    findActiveToken: createTokenReader(database),
    sweep: () => sweep(database, leases),
    engine: database.engine,
    migrate: database.migrate,
    pendingMigrations: database.pendingMigrations,
    onStatement: database.onStatement,
    async close() {
      await Promise.race([clicks.drained(), sleep(LAST_CLICKS_MS, undefined, { ref: false })]);
      await database.close();
    },
  };
}
