import type { ActiveToken } from "../resources/access/introspect.ts";
import type { IdempotencyStore } from "../resources/idempotency/run-once.ts";
import type { LinkStore } from "../resources/links/types.ts";
import type { DeliveryQueue, WebhookStore } from "../resources/webhooks/types.ts";
import type { AccountDeletionStore } from "./accounts/delete.ts";
import type { EmailStore } from "./accounts/emails.ts";
import type { IdentityStore } from "./accounts/identities.ts";
import type { KnownDeviceStore } from "./accounts/known-devices.ts";
import type { NoticeStore } from "./accounts/notices.ts";
import type { RegistrationStore } from "./accounts/register.ts";
import type { SecondFactorStore } from "./accounts/second-factors/index.ts";
import type { SessionStore } from "./accounts/sessions.ts";
import type { SignInFailureStore } from "./accounts/sign-in-failures.ts";
import type { AccountStore } from "./accounts/store.ts";
import type { AccountSwitchStore } from "./accounts/switches.ts";
import type { Backlog } from "./backlog.ts";
import type { EncryptionKeys } from "./crypto/encryption.ts";
import type { KeyStore } from "./crypto/keys.ts";
import type { Database } from "./database/index.ts";
import type { PartitionOptions, PartitionResult } from "./database/partitions/convert.ts";
import type { Deleted } from "./database/purge-expired.ts";
import type { Replica } from "./database/replica.ts";
import type { AuditChain } from "./events/audit-chain.ts";
import type { AuditStore } from "./events/audit-log.ts";
import type { MemberEventStore } from "./events/member-events.ts";
import type { OperatorLog } from "./events/operator-log.ts";
import type { ChainReport } from "./events/verify-chain.ts";
import type { LeakStore } from "./leaked-credentials.ts";
import type { LinkSwitchStore } from "./links/switch.ts";
import type { MailQueue } from "./mail/queue.ts";
import type { ClientStore } from "./oauth/clients.ts";
import type { ConsentStore } from "./oauth/consents.ts";
import type { GrantStore } from "./oauth/grants.ts";
import type { createOidcAdapter } from "./oauth/oidc/index.ts";
import type { ReplayedGrantStore } from "./oauth/oidc/replays.ts";
import type { ReplayStore } from "./oauth/replay.ts";
import type { AppPolicyStore } from "./organizations/app-policy.ts";
import type { ApprovedAppStore } from "./organizations/approved-apps.ts";
import type { DpopRequirementStore } from "./organizations/dpop-requirement.ts";
import type { EnterpriseAuthorizationStore } from "./organizations/enterprise-authorization.ts";
import type { InvitationStore } from "./organizations/invitations.ts";
import type { MemberStore } from "./organizations/members.ts";
import type { SecondFactorRequirementStore } from "./organizations/second-factor-requirement.ts";
import type { OrganizationStore } from "./organizations/store.ts";
import type { SuspensionStore } from "./organizations/suspension.ts";
import type { TrustRuleStore } from "./organizations/trust-rules.ts";
import type { Reencrypted } from "./reencryption.ts";

/** All stores, over one database. */
export type Storage = {
  accounts: AccountStore;
  appPolicies: AppPolicyStore;
  approvedApps: ApprovedAppStore;
  audit: AuditStore;
  auditChain: AuditChain;
  clients: ClientStore;
  consents: ConsentStore;
  deliveries: DeliveryQueue;
  dpopRequirement: DpopRequirementStore;
  emails: EmailStore;
  enterpriseAuthorization: EnterpriseAuthorizationStore;
  grants: GrantStore;
  invitations: InvitationStore;
  accountDeletions: AccountDeletionStore;
  idempotency: IdempotencyStore;
  identities: IdentityStore;
  keys: KeyStore;
  leaks: LeakStore;
  knownDevices: KnownDeviceStore;
  links: LinkStore;
  mails: MailQueue;
  memberEvents: MemberEventStore;
  members: MemberStore;
  notices: NoticeStore;
  operatorLog: OperatorLog;
  organizations: OrganizationStore;
  accountSwitches: AccountSwitchStore;
  linkSwitches: LinkSwitchStore;
  suspensions: SuspensionStore;
  registrations: RegistrationStore;
  replayedGrants: ReplayedGrantStore;
  replays: ReplayStore;
  secondFactors: SecondFactorStore;
  secondFactorRequirement: SecondFactorRequirementStore;
  trustRules: TrustRuleStore;
  webhooks: WebhookStore;
  sessions: SessionStore;
  signInFailures: SignInFailureStore;
  /** The replica that redirects read, if there is one. */
  replica: Pick<Replica, "state" | "reads" | "onChange"> | undefined;
  /** oidc-provider's storage contract: returns the adapter of a model by name. */
  oidcAdapter: ReturnType<typeof createOidcAdapter>;
  findActiveToken(token: string): Promise<ActiveToken | undefined>;
  /** Starts to index the links of organizations that have many, unless another process is indexing. */
  indexLinks(): Promise<void>;
  /** Resolves when the links that this process indexes are. */
  linksIndexed(): Promise<void>;
  /** Replaces the encryption keys. @throws TypeError for a key of another length */
  useEncryptionKeys(keys: EncryptionKeys): void;
  /** Encrypts again what an older key encrypted. Resolves to undefined while another process does. */
  reencrypt(stop?: AbortSignal): Promise<Reencrypted | undefined>;
  /** Counts the values that an older encryption key encrypted. */
  countOutdatedCiphertexts(): Promise<number>;
  /** Verifies the hash chain of one audit log, or of all. */
  verifyAuditLogs(organizationId?: string): Promise<ChainReport[]>;
  /** Returns what waits in the database for any process. */
  backlog(): Promise<Backlog>;
  /** Returns how many seconds this machine's clock is ahead of the database's. */
  clockAhead(): Promise<number>;
  /** Returns the time by the clock of the database server, in milliseconds since 1970. */
  databaseTime(): Promise<number>;
  /**
   * PostgreSQL: partitions tables by time, all whose rows expire unless names are given, while servers use them.
   * @throws PartitionFailed
   */
  partition(tables: string[], options?: PartitionOptions): Promise<PartitionResult>;
  /** Does once what has to wait until no process of the previous version runs. */
  finishUpgrade(): Promise<void>;
  /** Deletes expired rows and the content of deleted organizations. Resolves to undefined while another process does. `stop` ends it after the current batch. */
  purgeExpired(stop?: AbortSignal): Promise<Deleted | undefined>;
} & Pick<
  Database,
  | "backUp"
  | "connections"
  | "engine"
  | "migrate"
  | "pendingMigrations"
  | "newerMigrations"
  | "onStatement"
  | "onCheckpointError"
  | "close"
>;
