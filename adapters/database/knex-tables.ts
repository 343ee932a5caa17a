import type { Knex } from "knex";
import type {
  IdentityRow,
  KnownDeviceRow,
  MailRow,
  NoticeRow,
  OneTimeLinkRow,
  SignInFailureRow,
  UserRow,
} from "./account-tables.ts";
import type { AuditChainRow } from "./audit-tables.ts";
import type { PasskeyRow, RecoveryCodeRow, TotpSecretRow } from "./factor-tables.ts";
import type { ClickStatRow, ClickTotalRow, LinkChangesRow, LinkRow } from "./link-tables.ts";
import type {
  ApprovedAppRow,
  ClientKeyRow,
  ClientRow,
  ClientSecretRow,
  ClientSecretUseRow,
  GrantRow,
  InteractionRow,
  SessionRow,
  TokenRow,
  TrustRuleRow,
} from "./oauth-tables.ts";
import type {
  DeliveryRow,
  DeliveryUsageRow,
  EventRow,
  IdempotencyKeyRow,
  InvitationRow,
  LeaseRow,
  MembershipRow,
  OrganizationRow,
  SchemaCompatibilityRow,
  Time,
  WebhookRow,
} from "./tables.ts";

type SealedKeyRow = {
  purpose: string;
  sealed: string;
  created_at: Time;
  /** Incremented by each rotation. */
  version: number;
};

/** The links of an organization and their stored text, in bytes. */
type OrganizationUsageRow = { organization_id: string; links: number; link_bytes: number };

type NullableColumn<Row> = { [Column in keyof Row]: null extends Row[Column] ? Column : never }[keyof Row];
/** A row to insert: nullable columns and columns with a default may be omitted. */
type NewRow<Row, Optional extends keyof Row> = Omit<Row, Optional> & Partial<Pick<Row, Optional>>;
type Table<Row extends object, Defaulted extends keyof Row = never> = Knex.CompositeTableType<
  Row,
  NewRow<Row, NullableColumn<Row> | Defaulted>,
  { [Column in keyof Row]?: Row[Column] | Knex.Raw }
>;

declare module "knex/types/tables.js" {
  // Types every `knex("…")` and `trx("…")` of these names. A table with an alias stays untyped: name its columns' types.
  interface Tables {
    approved_apps: Table<ApprovedAppRow>;
    audit_chains: Table<AuditChainRow>;
    click_stats: Table<ClickStatRow>;
    click_totals: Table<ClickTotalRow>;
    client_keys: Table<ClientKeyRow>;
    client_secret_uses: Table<ClientSecretUseRow>;
    client_secrets: Table<ClientSecretRow>;
    clients: Table<ClientRow, "generation">;
    deliveries: Table<DeliveryRow, "attempts">;
    delivery_usage: Table<DeliveryUsageRow>;
    events: Table<EventRow>;
    grants: Table<GrantRow>;
    idempotency_keys: Table<IdempotencyKeyRow>;
    identities: Table<IdentityRow>;
    interactions: Table<InteractionRow>;
    invitations: Table<InvitationRow>;
    known_devices: Table<KnownDeviceRow, "failures">;
    leases: Table<LeaseRow>;
    link_changes: Table<LinkChangesRow>;
    links: Table<LinkRow, "archived" | "clicks" | "version">;
    mails: Table<MailRow, "attempts">;
    memberships: Table<MembershipRow>;
    notices: Table<NoticeRow>;
    one_time_links: Table<OneTimeLinkRow>;
    organizations: Table<
      OrganizationRow,
      | "document_clients"
      | "require_dpop"
      | "enterprise_authorization"
      | "member_apps"
      | "require_second_factor"
    >;
    organization_usage: Table<OrganizationUsageRow>;
    passkeys: Table<PasskeyRow>;
    recovery_codes: Table<RecoveryCodeRow>;
    schema_compatibility: Table<SchemaCompatibilityRow>;
    sealed_keys: Table<SealedKeyRow, "version">;
    sessions: Table<SessionRow>;
    sign_in_failures: Table<SignInFailureRow>;
    tokens: Table<TokenRow, "retries">;
    totp_secrets: Table<TotpSecretRow>;
    trust_rules: Table<TrustRuleRow>;
    users: Table<UserRow>;
    webhooks: Table<WebhookRow, "failures">;
  }
}
