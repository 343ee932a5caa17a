import type { Knex } from "knex";
import type * as accounts from "./account-tables.ts";
import type * as oauth from "./oauth-tables.ts";
import type * as rows from "./tables.ts";

type SealedKeyRow = {
  purpose: string;
  sealed: string;
  created_at: rows.Time;
  /** Incremented by each rotation. */
  version: number;
};

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
  // Types `knex("…")` and `trx("…")`. A table with an alias stays untyped: name its columns' types.
  interface Tables {
    approved_apps: Table<oauth.ApprovedAppRow>;
    audit_chains: Table<rows.AuditChainRow>;
    click_counts: Table<rows.ClickCountRow>;
    client_keys: Table<oauth.ClientKeyRow>;
    client_profiles: Table<oauth.ClientProfileRow>;
    client_secret_uses: Table<oauth.ClientSecretUseRow>;
    client_secrets: Table<oauth.ClientSecretRow>;
    clients: Table<oauth.ClientRow, "generation" | "fapi">;
    deliveries: Table<rows.DeliveryRow, "attempts" | "type">;
    delivery_usage: Table<rows.DeliveryUsageRow>;
    events: Table<rows.EventRow>;
    grants: Table<oauth.GrantRow>;
    idempotency_keys: Table<rows.IdempotencyKeyRow>;
    identities: Table<accounts.IdentityRow>;
    interactions: Table<oauth.InteractionRow>;
    invitations: Table<rows.InvitationRow>;
    known_devices: Table<accounts.KnownDeviceRow, "failures">;
    leases: Table<rows.LeaseRow>;
    link_changes: Table<rows.LinkChangesRow>;
    links: Table<rows.LinkRow, "archived" | "clicks" | "bot_clicks" | "version">;
    mails: Table<accounts.MailRow, "attempts">;
    memberships: Table<rows.MembershipRow>;
    notices: Table<accounts.NoticeRow>;
    one_time_links: Table<accounts.OneTimeLinkRow>;
    organizations: Table<
      rows.OrganizationRow,
      | "document_clients"
      | "require_dpop"
      | "enterprise_authorization"
      | "member_apps"
      | "require_second_factor"
    >;
    organization_usage: Table<OrganizationUsageRow>;
    passkeys: Table<accounts.PasskeyRow>;
    recovery_codes: Table<accounts.RecoveryCodeRow>;
    schema_compatibility: Table<rows.SchemaCompatibilityRow>;
    sealed_keys: Table<SealedKeyRow, "version">;
    sessions: Table<oauth.SessionRow>;
    sign_in_failures: Table<accounts.SignInFailureRow>;
    tokens: Table<oauth.TokenRow, "retries">;
    totp_secrets: Table<accounts.TotpSecretRow>;
    trust_rules: Table<oauth.TrustRuleRow>;
    users: Table<accounts.UserRow>;
    webhooks: Table<rows.WebhookRow, "failures">;
  }
}
