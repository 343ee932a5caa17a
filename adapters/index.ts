import { setTimeout as sleep } from "node:timers/promises";
import { createAccountDeletionStore } from "./accounts/delete.ts";
import { createAccountDisablingStore } from "./accounts/disable.ts";
import { createEmailStore } from "./accounts/emails.ts";
import { createIdentityStore } from "./accounts/identities.ts";
import { createKnownDeviceStore } from "./accounts/known-devices.ts";
import { createNoticeStore } from "./accounts/notices.ts";
import { resolveResetRequest } from "./accounts/passwords.ts";
import { createSecondFactorStore } from "./accounts/second-factors/index.ts";
import { createSessionStore } from "./accounts/sessions.ts";
import { createSignInFailureStore } from "./accounts/sign-in-failures.ts";
import { createAccountStore, createRegistrationStore } from "./accounts/store.ts";
import { readBacklog, readClock, readClockAhead } from "./backlog.ts";
import { createEncryption, type EncryptionKeys } from "./crypto/encryption.ts";
import { createKeyStore } from "./crypto/keys.ts";
import type { DatabaseOptions } from "./database/engine.ts";
import { openDatabase } from "./database/index.ts";
import { type OnPurge, purgeExpired } from "./database/purge-expired.ts";
import { createDomainStore } from "./domains.ts";
import { createAuditChain } from "./events/audit-chain.ts";
import { createAuditStore } from "./events/audit-log.ts";
import { createEventList } from "./events/event-list.ts";
import { createMemberEventStore } from "./events/member-events.ts";
import { createOperatorLog } from "./events/operator-log.ts";
import { type CurrentTraceparent, createOutbox } from "./events/outbox.ts";
import { purgeAuditLogs } from "./events/purge.ts";
import { type LogHead, verifyChains } from "./events/verify-chain.ts";
import { createIdempotencyStore } from "./idempotency.ts";
import { createLeakStore } from "./leaked-credentials.ts";
import { createClickBuffer } from "./links/click-buffer.ts";
import { createLinkDisablingStore } from "./links/disable.ts";
import { type ClickDetailDays, createClickFolding } from "./links/fold-clicks.ts";
import { prepareCurrentReads } from "./links/redirect-cache.ts";
import { rememberReads } from "./links/redirect-memory.ts";
import { hasSearchIndex } from "./links/search.ts";
import { createLinkStore } from "./links/store.ts";
import { type LimitsOf, unlimited } from "./links/usage.ts";
import { createMailQueue } from "./mail/queue.ts";
import { type AppPolicyCheck, OWN_CLIENTS_ONLY } from "./oauth/app-policy.ts";
import { createClientStore } from "./oauth/clients.ts";
import { createGrantUseRecorder } from "./oauth/grant-use-recorder.ts";
import { createGrantStore } from "./oauth/grants.ts";
import { createConsentStore } from "./oauth/oidc/grants.ts";
import { createOidcAdapter } from "./oauth/oidc/index.ts";
import { createReplayStore } from "./oauth/replay.ts";
import { createTokenReader } from "./oauth/token-row.ts";
import { createApprovedAppStore } from "./organizations/approved-apps.ts";
import { eraseLinks } from "./organizations/erase-links.ts";
import { createInvitationStore } from "./organizations/invitations.ts";
import { createMemberStore } from "./organizations/members.ts";
import { createSettingsStore } from "./organizations/settings.ts";
import { createOrganizationStore } from "./organizations/store.ts";
import { createSuspensionStore } from "./organizations/suspension.ts";
import { createTrustRuleStore } from "./organizations/trust-rules.ts";
import { countOutdated, reencrypt } from "./reencryption.ts";
import { createDeliveryQueue } from "./webhooks/queue.ts";
import { createWebhookStore } from "./webhooks/store.ts";

// How long a shutdown waits for an unavailable database to store the last clicks and uses of grants.
const LAST_WRITES_MS = 3000;

export type Storage = ReturnType<typeof openStorage>;

type StorageOptions = {
  /** Which clients organizations may allow. Only a process that checks tokens or grants needs one. */
  appPolicyCheck?: AppPolicyCheck;
  /** The quotas of each plan. Only a process that changes links needs them. */
  limitsOf?: LimitsOf;
  /** Only a process that purges needs them. Without them, statistics are kept as they are. */
  clickDetailDays?: ClickDetailDays;
  /** Ties events to the traces of requests. */
  currentTraceparent?: CurrentTraceparent | undefined;
} & Pick<DatabaseOptions, "timeoutMs" | "observer">;

/** `encryptionKeys` are for secrets that must be readable and therefore cannot be hashed. */
export function openStorage(
  url: string,
  encryptionKeys: EncryptionKeys,
  {
    appPolicyCheck = OWN_CLIENTS_ONLY,
    limitsOf = unlimited,
    clickDetailDays,
    currentTraceparent,
    ...options
  }: StorageOptions = {},
) {
  const database = openDatabase(url, options);
  const outbox = createOutbox(database, currentTraceparent);
  const encryption = createEncryption(encryptionKeys);
  const auditChain = createAuditChain(database);
  const grantUse = createGrantUseRecorder(database);
  const clicks = createClickBuffer(database, outbox);
  const foldClicks = createClickFolding(database, clickDetailDays);
  const reads = prepareCurrentReads(database);
  const currentReads = database.engine === "sqlite" ? reads : rememberReads(reads, outbox);
  const accounts = createAccountStore(database, outbox);
  const clients = createClientStore(database, outbox);
  return {
    accounts,
    approvedApps: createApprovedAppStore(database, outbox),
    audit: createAuditStore(database, outbox, auditChain),
    auditChain,
    clients,
    consents: createConsentStore(database, outbox),
    domains: createDomainStore(database, outbox, currentReads),
    deliveries: createDeliveryQueue(database, outbox, encryption),
    events: createEventList(database),
    grants: createGrantStore(database, outbox, encryption),
    invitations: createInvitationStore(database, outbox, encryption),
    keys: createKeyStore(database, encryption),
    knownDevices: createKnownDeviceStore(database),
    leaks: createLeakStore(database, outbox),
    accountDeletions: createAccountDeletionStore(outbox),
    idempotency: createIdempotencyStore(database, encryption),
    identities: createIdentityStore(database, outbox),
    links: createLinkStore(database, outbox, { clicks, limitsOf, clickDetailDays, currentReads }),
    emails: createEmailStore(database, encryption),
    mails: createMailQueue(database, encryption, resolveResetRequest),
    memberEvents: createMemberEventStore(outbox),
    members: createMemberStore(database, outbox, encryption),
    notices: createNoticeStore(database),
    operatorLog: createOperatorLog(database),
    organizations: createOrganizationStore(database, outbox),
    organizationSettings: createSettingsStore(database, outbox),
    disabledAccounts: createAccountDisablingStore(database, outbox),
    disabledLinks: createLinkDisablingStore(database, outbox),
    suspensions: createSuspensionStore(database, outbox),
    registrations: createRegistrationStore(outbox),
    replays: createReplayStore(database),
    secondFactors: createSecondFactorStore(database, outbox, encryption),
    trustRules: createTrustRuleStore(database, outbox),
    webhooks: createWebhookStore(database, outbox, encryption),
    signInFailures: createSignInFailureStore(database),
    sessions: createSessionStore(database, outbox),
    addPastClicks: clicks.addPast,
    droppedClicks: clicks.dropped,
    /** oidc-provider's storage contract: returns the adapter of a model by name. */
    oidcAdapter: createOidcAdapter(database, clients, outbox, grantUse, appPolicyCheck),
    findActiveToken: createTokenReader(database, grantUse, appPolicyCheck),
    /** Replaces the encryption keys. @throws TypeError for a key of another length */
    useEncryptionKeys: encryption.use,
    /** Encrypts again what an older key encrypted. Resolves to undefined while another process does. */
    reencrypt: (stop?: AbortSignal, onProgress?: (done: number) => void) =>
      reencrypt(database, encryption, stop, onProgress),
    /** Counts the values that an older encryption key encrypted; without a key, all that are encrypted. */
    countOutdatedCiphertexts: () => countOutdated(database, encryption),
    /** Verifies one audit log, or all, and that they contain heads. Resolves to no reports if there is no such log. */
    verifyAuditLogs: (organizationId?: string, kept?: readonly LogHead[]) =>
      verifyChains(database, auditChain, organizationId, kept),
    /** Resolves to undefined while another process purges. `stop` ends it after the current batch. */
    purgeExpired: (stop?: AbortSignal, onProgress?: OnPurge) =>
      purgeExpired(database, purgeAuditLogs, eraseLinks, foldClicks, stop, onProgress),
    backlog: () => readBacklog(database),
    clockAhead: () => readClockAhead(database),
    connections: database.connections,
    engine: database.engine,
    databaseTime: () => readClock(database),
    /** PostgreSQL: resolves to whether searches have an index. */
    hasSearchIndex: () => hasSearchIndex(database.knex),
    migrate: database.migrate,
    backUp: database.backUp,
    assertEncoding: database.assertEncoding,
    clusterSize: database.clusterSize,
    isWritable: database.isWritable,
    pendingMigrations: database.pendingMigrations,
    newerMigrations: database.newerMigrations,
    planUpgrade: database.planUpgrade,
    onCheckpointError: database.onCheckpointError,
    onFailure: database.onFailure,
    async close() {
      const stored = Promise.all([clicks.drained(), grantUse.settled()]);
      await Promise.race([stored, sleep(LAST_WRITES_MS, undefined, { ref: false })]);
      await database.close();
    },
  };
}
