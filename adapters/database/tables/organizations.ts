import type { Role } from "../../../resources/access/scopes.ts";
import type { Plan } from "../../../resources/plans.ts";
import * as t from "./columns.ts";

export const organizations = t.table("organizations", {
  id: t.id().primary(),
  name: t.string(100),
  plan: t.string(16).as<Plan>(),
  created_at: t.time(),
  updated_at: t.time(),
  /** A deleted organization keeps its row, so the slugs of its links are never reused. */
  deleted_at: t.time().indexed().nullable(),
  suspended_at: t.time().nullable(),
  suspended_reason: t.string(255).nullable(),
  /** Which clients without an organization may act for this one. */
  document_clients: t.string(16).as<"known" | "any" | "none">().default("known"),
  /** Which apps the role `member` may authorize. */
  member_apps: t.string(16).as<"any" | "approved" | "none">().default("any"),
  require_dpop: t.flag().default(false),
  enterprise_authorization: t.flag().default(false),
  require_second_factor: t.flag().default(false),
  /** Where visitors go when a short link is no longer available. */
  fallback_url: t.text().nullable(),
  /** The IANA name of the zone whose days and hours its clicks are counted by. */
  time_zone: t.string(64).default("UTC"),
  /** The host of the domain that new links get, once it is verified. */
  default_domain: t.key(t.HOST).nullable(),
});
export type OrganizationRow = t.RowOf<typeof organizations>;

export const organizationUsage = t.table("organization_usage", {
  organization_id: t.id().primary(),
  // Null, which these columns refuse, is a count above the quota.
  links: t.count(),
  link_bytes: t.count(),
});

export const memberships = t.table(
  "memberships",
  {
    user_id: t.id().deletedWith("users.id"),
    organization_id: t.id().deletedWith("organizations.id").indexed(),
    role: t.string(16).as<Role>(),
    created_at: t.time(),
  },
  { primary: ["user_id", "organization_id"] },
);

export const invitations = t.table(
  "invitations",
  {
    id: t.id().primary(),
    id_hash: t.hash().unique(),
    organization_id: t.id().indexed(),
    role: t.string(16).as<Role>(),
    created_by: t.id(),
    created_at: t.time(),
    expires_at: t.time().indexed(),
    used_at: t.time().nullable(),
    /** Where it was sent. */
    email: t.string(t.EMAIL).nullable(),
    /** For whom it is, in the words of its creator. */
    label: t.string(100).nullable(),
  },
  { purged: {} },
);

export const approvedApps = t.table(
  "approved_apps",
  {
    id: t.id().primary(),
    organization_id: t.id(),
    client_id: t.key(t.CLIENT_ID),
    /** A user id or `operator`. */
    approved_by: t.id(),
    created_at: t.time(),
  },
  { unique: [["organization_id", "client_id"]] },
);

export const trustRules = t.table("trust_rules", {
  id: t.id().primary(),
  organization_id: t.id().indexed(),
  name: t.string(100),
  issuer: t.string(255),
  /** Exact, or a prefix followed by one `*`. */
  subject: t.string(255),
  audience: t.string(255),
  /** Further claims, and the values that they must have. */
  claims: t.json(),
  scopes: t.string(255),
  created_by: t.key(t.CLIENT_ID),
  created_at: t.time(),
  last_used_at: t.time().nullable(),
});
export type TrustRuleRow = t.RowOf<typeof trustRules>;

/** The hosts of organizations for their short links. Several may have added one, and one of them has it. */
export const domains = t.table(
  "domains",
  {
    id: t.id().primary(),
    organization_id: t.id(),
    host: t.key(t.HOST),
    /** The host, while it is verified and belongs to no other organization. */
    live_host: t.key(t.HOST).unique().nullable(),
    /** What its DNS record has to contain. */
    token: t.key(43),
    /** Since when the record of a verified domain is missing. */
    lost_at: t.time().nullable(),
    checked_at: t.time().indexed().nullable(),
    case_sensitive: t.flag(),
    root_redirect_url: t.text().nullable(),
    not_found_url: t.text().nullable(),
    fallback_url: t.text().nullable(),
    /** JSON. */
    app_links: t.longText(),
    version: t.integer().default(1),
    created_at: t.time(),
    updated_at: t.time(),
  },
  { unique: [["organization_id", "host"]] },
);
export type DomainRow = t.RowOf<typeof domains>;

export const ORGANIZATION_TABLES = [
  organizations,
  organizationUsage,
  memberships,
  invitations,
  approvedApps,
  trustRules,
  domains,
] as const;
