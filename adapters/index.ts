import { setTimeout as sleep } from "node:timers/promises";
import type { IdempotencyStore } from "../resources/idempotency.ts";
import type { ActiveToken, LinkStore } from "../resources/ports.ts";
import type { DeliveryQueue, WebhookStore } from "../resources/webhooks/ports.ts";
import { type AccountStore, createAccountStore } from "./accounts.ts";
import { type AuditStore, createAuditStore } from "./audit.ts";
import { createClickStats } from "./click-stats.ts";
import { createClickCounter } from "./clicks.ts";
import { type ClientStore, createClientStore } from "./clients.ts";
import { type Database, openDatabase } from "./database.ts";
import { createDeliveryQueue } from "./deliveries.ts";
import { createDepartureStore, type DepartureStore } from "./departure.ts";
import { createGrantStore, type GrantStore } from "./grants.ts";
import { createIdempotencyStore } from "./idempotency.ts";
import { createIdentityStore, type IdentityStore } from "./identities.ts";
import { createTokenReader } from "./introspection.ts";
import { createInvitationStore, type InvitationStore } from "./invitations.ts";
import { createJournal } from "./journal.ts";
import { createKeyStore, type KeyStore } from "./keys.ts";
import { createLeases } from "./leases.ts";
import { createLinkStore } from "./links.ts";
import { createMemberStore, type MemberStore } from "./members.ts";
import { createOidcAdapter } from "./oidc/index.ts";
import { createOrganizationStore, type OrganizationStore } from "./organizations.ts";
import { createRegistrationStore, type RegistrationStore } from "./registration.ts";
import { createSeal } from "./seal.ts";
import { createSignInStore, type SignInStore } from "./sign-ins.ts";
import { type Deleted, sweep } from "./sweep.ts";
import { explained } from "./unavailable.ts";
import { createUsageNotes } from "./usage.ts";
import { createWebhookStore } from "./webhooks.ts";

// How long a stop waits for a database that is away to take the last clicks, and when grants were used.
const LAST_WRITES_MS = 3000;

/** Everything that is kept, over one database. */
export type Storage = {
  accounts: AccountStore;
  audit: AuditStore;
  clients: ClientStore;
  deliveries: DeliveryQueue;
  grants: GrantStore;
  invitations: InvitationStore;
  departures: DepartureStore;
  idempotency: IdempotencyStore;
  identities: IdentityStore;
  keys: KeyStore;
  links: LinkStore;
  members: MemberStore;
  organizations: OrganizationStore;
  registrations: RegistrationStore;
  webhooks: WebhookStore;
  signIns: SignInStore;
  /** oidc-provider's storage contract: the name of a model → its adapter. */
  oidcAdapter: ReturnType<typeof createOidcAdapter>;
  findActiveToken(token: string): Promise<ActiveToken | undefined>;
  /** Removes expired rows; nothing while another process does. `stop` ends it after the current batch. */
  sweep(stop?: AbortSignal): Promise<Deleted | undefined>;
} & Pick<
  Database,
  "engine" | "migrate" | "pendingMigrations" | "onStatement" | "onCheckpointError" | "close"
>;

/**
 * Opens the database behind a `DATABASE_URL`.
 * @param encryptionKey 32 bytes; what cannot be hashed is encrypted with it
 */
export function openStorage(url: string, encryptionKey: Uint8Array): Storage {
  const database = openDatabase(url);
  const leases = createLeases(database);
  const journal = createJournal(database);
  const seal = createSeal(encryptionKey);
  const usage = createUsageNotes(database);
  const clicks = createClickCounter(database, journal);
  const stats = createClickStats(database);
  const clients = explained(createClientStore(database, journal), "ofOrganization");
  return {
    accounts: explained(createAccountStore(database, journal), "find", "findByUsername", "findByResetToken"),
    audit: explained(createAuditStore(database), "list"),
    clients,
    deliveries: createDeliveryQueue(database, journal, seal),
    grants: explained(createGrantStore(database, journal), "standing", "ofOrganization", "ofUser"),
    invitations: explained(createInvitationStore(database, journal), "list", "find"),
    keys: explained(createKeyStore(database, seal), "check"),
    departures: explained(createDepartureStore(database, journal)),
    idempotency: createIdempotencyStore(database, seal),
    identities: explained(createIdentityStore(database, journal), "ownerOf", "ofUser"),
    links: explained(
      createLinkStore(database, journal, clicks, stats),
      "find",
      "findByExternalId",
      "list",
      "count",
      "analytics",
    ),
    members: explained(createMemberStore(database, journal), "list"),
    organizations: explained(createOrganizationStore(database, journal), "find", "list", "ofUser"),
    registrations: explained(createRegistrationStore(database, journal)),
    webhooks: explained(createWebhookStore(database, journal, seal), "find", "list", "count", "deliveries"),
    signIns: explained(createSignInStore(database, journal), "ofUser"),
    oidcAdapter: createOidcAdapter(database, clients, journal, usage),
    findActiveToken: createTokenReader(database, usage),
    sweep: (stop) => sweep(database, leases, stop),
    engine: database.engine,
    migrate: database.migrate,
    pendingMigrations: database.pendingMigrations,
    onStatement: database.onStatement,
    onCheckpointError: database.onCheckpointError,
    async close() {
      const stored = Promise.all([clicks.drained(), stats.drained(), usage.settled()]);
      await Promise.race([stored, sleep(LAST_WRITES_MS, undefined, { ref: false })]);
      await database.close();
    },
  };
}
