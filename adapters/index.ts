import { setTimeout as sleep } from "node:timers/promises";
import type { ActiveToken } from "../resources/access/introspect.ts";
import type { IdempotencyStore } from "../resources/idempotency/run-once.ts";
import type { LinkStore } from "../resources/links/types.ts";
import type { DeliveryQueue, WebhookStore } from "../resources/webhooks/types.ts";
import { type AccountDeletionStore, createAccountDeletionStore } from "./accounts/delete.ts";
import { createIdentityStore, type IdentityStore } from "./accounts/identities.ts";
import { createRegistrationStore, type RegistrationStore } from "./accounts/register.ts";
import { createSessionStore, type SessionStore } from "./accounts/sessions.ts";
import { type AccountStore, createAccountStore } from "./accounts/store.ts";
import { createEncryption } from "./crypto/encryption.ts";
import { createKeyStore, type KeyStore } from "./crypto/keys.ts";
import { type Database, openDatabase } from "./database/index.ts";
import { createLeases } from "./database/leases.ts";
import { type Deleted, purgeExpired } from "./database/purge-expired.ts";
import { mapStorageErrors } from "./database/retry.ts";
import { type AuditStore, createAuditStore } from "./events/audit-log.ts";
import { createOutbox } from "./events/outbox.ts";
import { createIdempotencyStore } from "./idempotency.ts";
import { createClickCounter } from "./links/click-counter.ts";
import { createClickStats } from "./links/click-stats.ts";
import { createLinkStore } from "./links/store.ts";
import { type ClientPolicy, OWN_CLIENTS_ONLY } from "./oauth/client-policy.ts";
import { type ClientStore, createClientStore } from "./oauth/clients.ts";
import { type ConsentStore, createConsentStore } from "./oauth/consents.ts";
import { createTokenReader } from "./oauth/find-active-token.ts";
import { createGrantUsage } from "./oauth/grant-usage.ts";
import { createGrantStore, type GrantStore } from "./oauth/grants.ts";
import { createOidcAdapter } from "./oauth/oidc/index.ts";
import { createReplayStore, type ReplayStore } from "./oauth/replay.ts";
import { type AllowedClientsStore, createAllowedClientsStore } from "./organizations/allowed-clients.ts";
import { createDpopRequirementStore, type DpopRequirementStore } from "./organizations/dpop-requirement.ts";
import {
  createEnterpriseAuthorizationStore,
  type EnterpriseAuthorizationStore,
} from "./organizations/enterprise-authorization.ts";
import { createInvitationStore, type InvitationStore } from "./organizations/invitations.ts";
import { createMemberStore, type MemberStore } from "./organizations/members.ts";
import { createOrganizationStore, type OrganizationStore } from "./organizations/store.ts";
import { createTrustRuleStore, type TrustRuleStore } from "./organizations/trust-rules.ts";
import { createDeliveryQueue } from "./webhooks/queue.ts";
import { createWebhookStore } from "./webhooks/store.ts";

// How long a shutdown waits for an unavailable database to store the last clicks and grant usage.
const LAST_WRITES_MS = 3000;

/** All stores, over one database. */
export type Storage = {
  accounts: AccountStore;
  allowedClients: AllowedClientsStore;
  audit: AuditStore;
  clients: ClientStore;
  consents: ConsentStore;
  deliveries: DeliveryQueue;
  dpopRequirement: DpopRequirementStore;
  enterpriseAuthorization: EnterpriseAuthorizationStore;
  grants: GrantStore;
  invitations: InvitationStore;
  accountDeletions: AccountDeletionStore;
  idempotency: IdempotencyStore;
  identities: IdentityStore;
  keys: KeyStore;
  links: LinkStore;
  members: MemberStore;
  organizations: OrganizationStore;
  registrations: RegistrationStore;
  replays: ReplayStore;
  trustRules: TrustRuleStore;
  webhooks: WebhookStore;
  sessions: SessionStore;
  /** oidc-provider's storage contract: returns the adapter of a model by name. */
  oidcAdapter: ReturnType<typeof createOidcAdapter>;
  findActiveToken(token: string): Promise<ActiveToken | undefined>;
  /** Deletes expired rows. Resolves to undefined while another process does. `stop` ends it after the current batch. */
  purgeExpired(stop?: AbortSignal): Promise<Deleted | undefined>;
} & Pick<
  Database,
  | "engine"
  | "migrate"
  | "pendingMigrations"
  | "rejectNewerSchema"
  | "onStatement"
  | "onCheckpointError"
  | "close"
>;

type StorageOptions = {
  /** Which clients organizations may allow. Only a process that checks tokens or grants needs one. */
  clientPolicy?: ClientPolicy;
};

/**
 * Opens the database behind a `DATABASE_URL`.
 * @param encryptionKey 32 bytes, for secrets that must be readable and therefore cannot be hashed
 */
export function openStorage(
  url: string,
  encryptionKey: Uint8Array,
  { clientPolicy = OWN_CLIENTS_ONLY }: StorageOptions = {},
): Storage {
  const database = openDatabase(url);
  const leases = createLeases(database);
  const outbox = createOutbox(database);
  const encryption = createEncryption(encryptionKey);
  const usage = createGrantUsage(database);
  const clicks = createClickCounter(database, outbox);
  const stats = createClickStats(database);
  const clients = mapStorageErrors(createClientStore(database, outbox), "findByOrganization");
  return {
    accounts: mapStorageErrors(
      createAccountStore(database, outbox),
      "find",
      "findByUsername",
      "findByResetToken",
    ),
    allowedClients: mapStorageErrors(createAllowedClientsStore(database, outbox), "find", "findByUser"),
    audit: mapStorageErrors(createAuditStore(database), "list"),
    clients,
    consents: mapStorageErrors(createConsentStore(database), "list"),
    deliveries: createDeliveryQueue(database, outbox, encryption),
    dpopRequirement: mapStorageErrors(createDpopRequirementStore(database, outbox), "isRequired"),
    enterpriseAuthorization: mapStorageErrors(
      createEnterpriseAuthorizationStore(database, outbox),
      "isEnabled",
      "listByUser",
    ),
    grants: mapStorageErrors(
      createGrantStore(database, outbox, clientPolicy),
      "findStatus",
      "listByOrganization",
      "listByUser",
    ),
    invitations: mapStorageErrors(createInvitationStore(database, outbox), "list", "find"),
    keys: mapStorageErrors(createKeyStore(database, encryption), "check"),
    accountDeletions: mapStorageErrors(createAccountDeletionStore(database, outbox)),
    idempotency: createIdempotencyStore(database, encryption),
    identities: mapStorageErrors(createIdentityStore(database, outbox), "findUserId", "listByUser"),
    links: mapStorageErrors(
      createLinkStore(database, outbox, clicks, stats),
      "find",
      "findByExternalId",
      "list",
      "count",
      "analytics",
    ),
    members: mapStorageErrors(createMemberStore(database, outbox), "list"),
    organizations: mapStorageErrors(createOrganizationStore(database, outbox), "find", "list", "listByUser"),
    registrations: mapStorageErrors(createRegistrationStore(database, outbox)),
    replays: mapStorageErrors(createReplayStore(database)),
    trustRules: mapStorageErrors(createTrustRuleStore(database, outbox), "list", "listByIssuer"),
    webhooks: mapStorageErrors(
      createWebhookStore(database, outbox, encryption),
      "find",
      "list",
      "count",
      "deliveries",
    ),
    sessions: mapStorageErrors(createSessionStore(database, outbox), "listByUser"),
    oidcAdapter: createOidcAdapter(database, clients, outbox, usage, clientPolicy),
    findActiveToken: createTokenReader(database, usage, clientPolicy),
    purgeExpired: (stop) => purgeExpired(database, leases, stop),
    engine: database.engine,
    migrate: database.migrate,
    pendingMigrations: database.pendingMigrations,
    rejectNewerSchema: database.rejectNewerSchema,
    onStatement: database.onStatement,
    onCheckpointError: database.onCheckpointError,
    async close() {
      const stored = Promise.all([clicks.drained(), stats.drained(), usage.settled()]);
      await Promise.race([stored, sleep(LAST_WRITES_MS, undefined, { ref: false })]);
      await database.close();
    },
  };
}
