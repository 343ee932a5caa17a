import { setTimeout as sleep } from "node:timers/promises";
import { createAccountDeletionStore } from "./accounts/delete.ts";
import { createEmailStore } from "./accounts/emails.ts";
import { createIdentityStore } from "./accounts/identities.ts";
import { createKnownDeviceStore } from "./accounts/known-devices.ts";
import { createNoticeStore } from "./accounts/notices.ts";
import { createRegistrationStore } from "./accounts/register.ts";
import { resolveResetRequest } from "./accounts/reset-requests.ts";
import { createSecondFactorStore } from "./accounts/second-factors/index.ts";
import { createSessionStore } from "./accounts/sessions.ts";
import { createSignInFailureStore } from "./accounts/sign-in-failures.ts";
import { createAccountStore } from "./accounts/store.ts";
import { createAccountSwitchStore } from "./accounts/switches.ts";
import { readBacklog, readClockAhead } from "./backlog.ts";
import { createEncryption, type EncryptionKeys } from "./crypto/encryption.ts";
import { createKeyStore } from "./crypto/keys.ts";
import { readClock } from "./database/clock.ts";
import { type DatabaseOptions, openDatabase } from "./database/index.ts";
import { createLeases } from "./database/leases.ts";
import { purgeExpired } from "./database/purge-expired.ts";
import { hasSearchIndex } from "./database/search-index.ts";
import { createAuditChain } from "./events/audit-chain.ts";
import { createAuditStore } from "./events/audit-log.ts";
import { acceptFirstHeads, acceptHeads } from "./events/chain-heads.ts";
import { type CurrentTraceparent, createEventTrace } from "./events/event-trace.ts";
import { createMemberEventStore } from "./events/member-events.ts";
import { createOperatorLog } from "./events/operator-log.ts";
import { createOutbox } from "./events/outbox.ts";
import { purgeAuditLogs } from "./events/purge.ts";
import { verifyChains } from "./events/verify-chain.ts";
import { createIdempotencyStore } from "./idempotency.ts";
import { createLeakStore } from "./leaked-credentials.ts";
import { createClickCounter } from "./links/click-counter.ts";
import { createClickStats } from "./links/click-stats.ts";
import { createSearch } from "./links/search.ts";
import { createLinkStore } from "./links/store.ts";
import { createLinkSwitchStore } from "./links/switch.ts";
import { type LimitsOf, unlimited } from "./links/usage.ts";
import { createMailQueue } from "./mail/queue.ts";
import { type ClientPolicy, OWN_CLIENTS_ONLY } from "./oauth/client-policy.ts";
import { createClientStore } from "./oauth/clients.ts";
import { createConsentStore } from "./oauth/consents.ts";
import { createTokenReader } from "./oauth/find-active-token.ts";
import { createGrantUsage } from "./oauth/grant-usage.ts";
import { createGrantStore } from "./oauth/grants.ts";
import { createConsentedGrantStore } from "./oauth/oidc/consented-grants.ts";
import { createOidcAdapter } from "./oauth/oidc/index.ts";
import { createReplayedGrantStore } from "./oauth/oidc/replays.ts";
import { createReplayStore } from "./oauth/replay.ts";
import { createAppPolicyStore } from "./organizations/app-policy.ts";
import { createApprovedAppStore } from "./organizations/approved-apps.ts";
import { createDpopRequirementStore } from "./organizations/dpop-requirement.ts";
import { createEnterpriseAuthorizationStore } from "./organizations/enterprise-authorization.ts";
import { eraseLinks } from "./organizations/erase-links.ts";
import { createInvitationStore } from "./organizations/invitations.ts";
import { createMemberStore } from "./organizations/members.ts";
import { createSecondFactorRequirementStore } from "./organizations/second-factor-requirement.ts";
import { createOrganizationStore } from "./organizations/store.ts";
import { createSuspensionStore } from "./organizations/suspension.ts";
import { createTrustRuleStore } from "./organizations/trust-rules.ts";
import { countOutdated, reencrypt } from "./reencryption.ts";
import { createDeliveryQueue } from "./webhooks/queue.ts";
import { createWebhookRows } from "./webhooks/row.ts";
import { createWebhookDeletion, createWebhookStore } from "./webhooks/store.ts";

// How long a shutdown waits for an unavailable database to store the last clicks and grant usage.
const LAST_WRITES_MS = 3000;

/** All stores, over one database. */
export type Storage = ReturnType<typeof openStorage>;

type StorageOptions = {
  /** Which clients organizations may allow. Only a process that checks tokens or grants needs one. */
  clientPolicy?: ClientPolicy;
  /** The quotas of each plan. Only a process that changes links needs them. */
  limitsOf?: LimitsOf;
  /** Ties events to the traces of requests. */
  currentTraceparent?: CurrentTraceparent | undefined;
} & Pick<DatabaseOptions, "timeoutMs" | "observer">;

/**
 * Opens the database behind a `DATABASE_URL`.
 * @param encryptionKeys for secrets that must be readable and therefore cannot be hashed; empty until there is one
 */
export function openStorage(
  url: string,
  encryptionKeys: EncryptionKeys,
  {
    clientPolicy = OWN_CLIENTS_ONLY,
    limitsOf = unlimited,
    currentTraceparent,
    ...options
  }: StorageOptions = {},
) {
  const database = openDatabase(url, options);
  const leases = createLeases(database);
  const outbox = createOutbox(database, createEventTrace(currentTraceparent));
  const encryption = createEncryption(encryptionKeys);
  const webhookDeletion = createWebhookDeletion(outbox, createWebhookRows(encryption));
  const auditChain = createAuditChain(database, leases, encryption);
  const usage = createGrantUsage(database);
  const clicks = createClickCounter(database, outbox);
  const stats = createClickStats(database);
  const search = createSearch(database);
  const purgeLogs = (mayContinue: () => Promise<boolean>) =>
    purgeAuditLogs(database, encryption, mayContinue);
  const clients = createClientStore(database, outbox);
  return {
    accounts: createAccountStore(database, outbox),
    appPolicies: createAppPolicyStore(database, outbox),
    approvedApps: createApprovedAppStore(database, outbox),
    audit: createAuditStore(database, outbox, auditChain),
    auditChain,
    clients,
    consentedGrants: createConsentedGrantStore(database, outbox),
    consents: createConsentStore(database),
    deliveries: createDeliveryQueue(database, outbox, encryption),
    dpopRequirement: createDpopRequirementStore(database, outbox),
    enterpriseAuthorization: createEnterpriseAuthorizationStore(database, outbox),
    grants: createGrantStore(database, outbox, clientPolicy, webhookDeletion),
    invitations: createInvitationStore(database, outbox, encryption),
    keys: createKeyStore(database, encryption),
    knownDevices: createKnownDeviceStore(database),
    leaks: createLeakStore(database, outbox),
    accountDeletions: createAccountDeletionStore(database, outbox),
    idempotency: createIdempotencyStore(database, encryption),
    identities: createIdentityStore(database, outbox),
    links: createLinkStore(database, outbox, clicks, stats, search, limitsOf),
    emails: createEmailStore(database, encryption),
    mails: createMailQueue(database, encryption, resolveResetRequest),
    memberEvents: createMemberEventStore(database, outbox),
    members: createMemberStore(database, outbox, webhookDeletion),
    notices: createNoticeStore(database),
    operatorLog: createOperatorLog(database, auditChain),
    organizations: createOrganizationStore(database, outbox),
    accountSwitches: createAccountSwitchStore(database, outbox),
    linkSwitches: createLinkSwitchStore(database, outbox),
    suspensions: createSuspensionStore(database, outbox),
    registrations: createRegistrationStore(database, outbox),
    replayedGrants: createReplayedGrantStore(database, outbox),
    replays: createReplayStore(database),
    secondFactors: createSecondFactorStore(database, outbox, encryption),
    secondFactorRequirement: createSecondFactorRequirementStore(database, outbox),
    trustRules: createTrustRuleStore(database, outbox),
    webhooks: createWebhookStore(database, outbox, encryption),
    signInFailures: createSignInFailureStore(database),
    sessions: createSessionStore(database, outbox),
    /** oidc-provider's storage contract: returns the adapter of a model by name. */
    oidcAdapter: createOidcAdapter(database, clients, outbox, usage, clientPolicy),
    findActiveToken: createTokenReader(database, usage, clientPolicy),
    /** Replaces the encryption keys. @throws TypeError for a key of another length */
    useEncryptionKeys: encryption.use,
    /** Encrypts again what an older key encrypted. Resolves to undefined while another process does. */
    reencrypt: (stop?: AbortSignal) => reencrypt(database, encryption, leases, stop),
    /** Counts the values that an older encryption key encrypted; without a key, all that are encrypted. */
    countOutdatedCiphertexts: () => countOutdated(database, encryption),
    /** Verifies one audit log, or all. Resolves to no reports if there is no such log. */
    verifyAuditLogs: (organizationId?: string) =>
      verifyChains(database, encryption, auditChain, organizationId),
    /** Deletes expired rows and the content of deleted organizations. Resolves to undefined while another process does. `stop` ends it after the current batch. */
    purgeExpired: (stop?: AbortSignal) => purgeExpired(database, leases, purgeLogs, eraseLinks, stop),
    /** Returns what waits in the database for any process. */
    backlog: () => readBacklog(database),
    /** Returns how many seconds this machine's clock is ahead of the database's. */
    clockAhead: () => readClockAhead(database),
    connections: database.connections,
    engine: database.engine,
    /** Returns the time by the clock of the database server, in milliseconds since 1970. */
    databaseTime: () => readClock(database),
    /** PostgreSQL: resolves to whether searches have an index. */
    hasSearchIndex: () => hasSearchIndex(database.knex),
    /** Authenticates the audit logs of a new database, which had no key when it was migrated. */
    beginAuditLogs: () => acceptFirstHeads(database, encryption),
    /** Authenticates the heads of all audit logs as they are. */
    acceptAuditLogs: () => acceptHeads(database, encryption),
    async migrate() {
      const applied = await database.migrate();
      await acceptFirstHeads(database, encryption);
      return applied;
    },
    backUp: database.backUp,
    pendingMigrations: database.pendingMigrations,
    newerMigrations: database.newerMigrations,
    onCheckpointError: database.onCheckpointError,
    onFailure: database.onFailure,
    async close() {
      const stored = Promise.all([clicks.drained(), stats.drained(), usage.settled()]);
      await Promise.race([stored, sleep(LAST_WRITES_MS, undefined, { ref: false })]);
      await database.close();
    },
  };
}
