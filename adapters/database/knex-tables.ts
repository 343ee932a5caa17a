import type { Knex } from "knex";
import type {
  ClientKeyRow,
  ClientRow,
  ClientSecretRow,
  GrantRow,
  InteractionRow,
  SessionRow,
  TokenRow,
  TrustRuleRow,
} from "./oauth-tables.ts";
import type {
  ClickStatRow,
  DeliveryRow,
  EventRow,
  IdempotencyKeyRow,
  IdentityRow,
  InvitationRow,
  LeaseRow,
  LinkRow,
  MembershipRow,
  OneTimeLinkRow,
  OrganizationRow,
  SealedKeyRow,
  UserRow,
  WebhookRow,
} from "./tables.ts";

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
    click_stats: Table<ClickStatRow>;
    client_keys: Table<ClientKeyRow>;
    client_secrets: Table<ClientSecretRow>;
    clients: Table<ClientRow, "generation">;
    deliveries: Table<DeliveryRow, "attempts">;
    events: Table<EventRow>;
    grants: Table<GrantRow>;
    idempotency_keys: Table<IdempotencyKeyRow>;
    identities: Table<IdentityRow>;
    interactions: Table<InteractionRow>;
    invitations: Table<InvitationRow>;
    leases: Table<LeaseRow>;
    links: Table<LinkRow, "archived" | "clicks" | "version">;
    memberships: Table<MembershipRow>;
    one_time_links: Table<OneTimeLinkRow>;
    organizations: Table<OrganizationRow, "document_clients" | "require_dpop" | "enterprise_authorization">;
    sealed_keys: Table<SealedKeyRow>;
    sessions: Table<SessionRow>;
    tokens: Table<TokenRow>;
    trust_rules: Table<TrustRuleRow>;
    users: Table<UserRow>;
    webhooks: Table<WebhookRow>;
  }
}
