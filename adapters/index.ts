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
import { partitionTables } from "./database/partitions/convert.ts";
import { purgeExpired } from "./database/purge-expired.ts";
import { openReplica } from "./database/replica.ts";
import { mapStorageErrors } from "./database/retry.ts";
import { createAuditChain } from "./events/audit-chain.ts";
import { createAuditStore } from "./events/audit-log.ts";
import { type CurrentTraceparent, createEventTrace } from "./events/event-trace.ts";
import { createMemberEventStore } from "./events/member-events.ts";
import { createOperatorLog } from "./events/operator-log.ts";
import { createOutbox } from "./events/outbox.ts";
import { verifyChains } from "./events/verify-chain.ts";
import { createFinishUpgrade } from "./finish-upgrade.ts";
import { createIdempotencyStore } from "./idempotency.ts";
import { createLeakStore } from "./leaked-credentials.ts";
import { createClickCounter } from "./links/click-counter.ts";
import { createClickLog } from "./links/click-log.ts";
import { createClickStats } from "./links/click-stats.ts";
import { createIndexer } from "./links/search/indexer.ts";
import { createSearch } from "./links/search/search.ts";
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
import { createOidcAdapter } from "./oauth/oidc/index.ts";
import { createReplayedGrantStore } from "./oauth/oidc/replays.ts";
import { createReplayStore } from "./oauth/replay.ts";
import { createTokenKeys } from "./oauth/token-keys.ts";
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
import type { Storage } from "./storage.ts";
import { createWebhookDeletion } from "./webhooks/delete.ts";
import { createDeliveryQueue } from "./webhooks/queue.ts";
import { createWebhookRows } from "./webhooks/row.ts";
import { createWebhookStore } from "./webhooks/store.ts";

// How long a shutdown waits for an unavailable database to store the last clicks and grant usage.
const LAST_WRITES_MS = 3000;

export type { Storage } from "./storage.ts";

type StorageOptions = {
  /** Which clients organizations may allow. Only a process that checks tokens or grants needs one. */
  clientPolicy?: ClientPolicy;
  /** The quotas of each plan. Only a process that changes links needs them. */
  limitsOf?: LimitsOf;
  /** A replica of the database, which redirects read. */
  replicaUrl?: string | undefined;
  /** Ties events to the traces of requests. */
  currentTraceparent?: CurrentTraceparent | undefined;
} & Pick<DatabaseOptions, "timeoutMs" | "observer">;

/**
 * Opens the database behind a `DATABASE_URL`.
 * @param encryptionKeys for secrets that must be readable and therefore cannot be hashed
 */
export function openStorage(
  url: string,
  encryptionKeys: EncryptionKeys,
  {
    clientPolicy = OWN_CLIENTS_ONLY,
    limitsOf = unlimited,
    replicaUrl,
    currentTraceparent,
    ...options
  }: StorageOptions = {},
): Storage {
  const database = openDatabase(url, options);
  const replica = replicaUrl === undefined ? undefined : openReplica(replicaUrl, url);
  const leases = createLeases(database);
  const outbox = createOutbox(database, createEventTrace(currentTraceparent));
  const encryption = createEncryption(encryptionKeys);
  const webhookDeletion = createWebhookDeletion(outbox, createWebhookRows(encryption));
  const auditChain = createAuditChain(database, leases);
  const usage = createGrantUsage(database);
  const tokenKeys = createTokenKeys(database);
  const clickLog = database.engine === "sqlite" ? createClickLog(database, leases) : undefined;
  const clicks = createClickCounter(database, outbox, clickLog);
  const stats = createClickStats(database);
  const indexer = createIndexer(database, leases);
  const search = createSearch(database, indexer);
  const purgeLinks: typeof eraseLinks = async (_, mayContinue) => {
    await eraseLinks(database, mayContinue);
    // Clicks that a killed process has logged.
    await clickLog?.fold(mayContinue);
  };
  const clients = mapStorageErrors(createClientStore(database, outbox), "findByOrganization");
  return {
    accounts: mapStorageErrors(
      createAccountStore(database, outbox),
      "find",
      "findWithFactor",
      "findByUsername",
      "findByResetToken",
    ),
    appPolicies: mapStorageErrors(createAppPolicyStore(database, outbox), "find", "findByUser"),
    approvedApps: mapStorageErrors(createApprovedAppStore(database, outbox), "list"),
    audit: mapStorageErrors(createAuditStore(database, outbox, auditChain), "list", "head"),
    auditChain,
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
      createGrantStore(database, outbox, clientPolicy, webhookDeletion),
      "findStatus",
      "listByOrganization",
      "listByUser",
    ),
    invitations: mapStorageErrors(createInvitationStore(database, outbox, encryption), "list", "find"),
    keys: mapStorageErrors(createKeyStore(database, encryption), "check", "version"),
    knownDevices: mapStorageErrors(createKnownDeviceStore(database)),
    leaks: mapStorageErrors(createLeakStore(database, outbox, tokenKeys)),
    accountDeletions: mapStorageErrors(createAccountDeletionStore(database, outbox)),
    idempotency: createIdempotencyStore(database, encryption),
    identities: mapStorageErrors(createIdentityStore(database, outbox), "findUserId", "listByUser"),
    links: mapStorageErrors(
      createLinkStore(database, outbox, clicks, stats, search, limitsOf, replica),
      "find",
      "findByExternalId",
      "list",
      "usage",
      "analytics",
    ),
    emails: mapStorageErrors(createEmailStore(database, encryption), "find"),
    mails: createMailQueue(database, encryption, resolveResetRequest),
    memberEvents: mapStorageErrors(createMemberEventStore(database, outbox)),
    members: mapStorageErrors(createMemberStore(database, outbox, webhookDeletion), "list"),
    notices: mapStorageErrors(createNoticeStore(database), "list"),
    operatorLog: createOperatorLog(database, auditChain),
    organizations: mapStorageErrors(createOrganizationStore(database, outbox), "find", "list", "listByUser"),
    accountSwitches: mapStorageErrors(createAccountSwitchStore(database, outbox), "findDisabled"),
    linkSwitches: mapStorageErrors(createLinkSwitchStore(database, outbox), "find"),
    suspensions: mapStorageErrors(createSuspensionStore(database, outbox), "find"),
    registrations: mapStorageErrors(createRegistrationStore(database, outbox)),
    replayedGrants: mapStorageErrors(createReplayedGrantStore(database, outbox)),
    replays: mapStorageErrors(createReplayStore(database)),
    secondFactors: createSecondFactorStore(database, outbox, encryption),
    secondFactorRequirement: createSecondFactorRequirementStore(database, outbox),
    trustRules: mapStorageErrors(createTrustRuleStore(database, outbox), "list", "listByIssuer"),
    webhooks: mapStorageErrors(
      createWebhookStore(database, outbox, encryption),
      "find",
      "list",
      "count",
      "countDeliveriesToday",
      "deliveries",
    ),
    signInFailures: mapStorageErrors(createSignInFailureStore(database)),
    sessions: mapStorageErrors(createSessionStore(database, outbox), "listByUser"),
    oidcAdapter: createOidcAdapter(database, clients, outbox, usage, clientPolicy, tokenKeys),
    findActiveToken: createTokenReader(database, usage, clientPolicy, tokenKeys),
    indexLinks: indexer.requestLarge,
    linksIndexed: indexer.settled,
    useEncryptionKeys: encryption.use,
    reencrypt: (stop) => reencrypt(database, encryption, leases, stop),
    countOutdatedCiphertexts: () => countOutdated(database, encryption),
    verifyAuditLogs: (organizationId) => verifyChains(database, auditChain, organizationId),
    purgeExpired: (stop) => purgeExpired(database, leases, purgeLinks, stop),
    partition: (tables, options) => partitionTables(database, tables, options),
    backlog: () => readBacklog(database),
    clockAhead: () => readClockAhead(database),
    connections: database.connections,
    engine: database.engine,
    replica,
    databaseTime: () => readClock(database),
    finishUpgrade: createFinishUpgrade(database, encryption, leases),
    migrate: database.migrate,
    backUp: database.backUp,
    pendingMigrations: database.pendingMigrations,
    newerMigrations: database.newerMigrations,
    onStatement: database.onStatement,
    onCheckpointError: database.onCheckpointError,
    async close() {
      const counted = clicks.drained().then(() => clickLog?.drained());
      const stored = Promise.all([counted, stats.drained(), usage.settled(), indexer.stop()]);
      await Promise.race([stored, sleep(LAST_WRITES_MS, undefined, { ref: false })]);
      await clickLog?.stop();
      await Promise.all([database.close(), replica?.close()]);
    },
  };
}
