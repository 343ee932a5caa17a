import type { Role } from "../../../resources/access/scopes.ts";
import type { Plan } from "../../../resources/plans.ts";
import {
  CLIENT_ID,
  count,
  EMAIL,
  flag,
  hash,
  id,
  json,
  key,
  type RowOf,
  string,
  table,
  text,
  time,
} from "./columns.ts";

export const organizations = table("organizations", {
  id: id().primary(),
  name: string(100),
  plan: string(16).as<Plan>(),
  created_at: time(),
  updated_at: time(),
  /** A deleted organization keeps its row, so the slugs of its links are never reused. */
  deleted_at: time().indexed().nullable(),
  suspended_at: time().nullable(),
  suspended_reason: string(255).nullable(),
  /** Which clients without an organization may act for this one. */
  document_clients: string(16).as<"known" | "any" | "none">().default("known"),
  /** Which apps the role `member` may authorize. */
  member_apps: string(16).as<"any" | "approved" | "none">().default("any"),
  require_dpop: flag().default(false),
  enterprise_authorization: flag().default(false),
  require_second_factor: flag().default(false),
  /** Where visitors go when a short link is no longer available. */
  fallback_url: text().nullable(),
});
export type OrganizationRow = RowOf<typeof organizations>;

export const organizationUsage = table("organization_usage", {
  organization_id: id().primary(),
  // Null, which these columns refuse, is a count above the quota.
  links: count(),
  link_bytes: count(),
});

export const memberships = table(
  "memberships",
  {
    user_id: id().deletedWith("users.id"),
    organization_id: id().deletedWith("organizations.id").indexed(),
    role: string(16).as<Role>(),
    created_at: time(),
  },
  { primary: ["user_id", "organization_id"] },
);

export const invitations = table(
  "invitations",
  {
    id: id().primary(),
    id_hash: hash().unique(),
    organization_id: id().indexed(),
    role: string(16).as<Role>(),
    created_by: id(),
    created_at: time(),
    expires_at: time().indexed(),
    used_at: time().nullable(),
    /** Where it was sent. */
    email: string(EMAIL).nullable(),
    /** For whom it is, in the words of its creator. */
    label: string(100).nullable(),
  },
  { purged: {} },
);

export const approvedApps = table(
  "approved_apps",
  {
    id: id().primary(),
    organization_id: id(),
    client_id: key(CLIENT_ID),
    /** A user id or `operator`. */
    approved_by: id(),
    created_at: time(),
  },
  { unique: [["organization_id", "client_id"]] },
);

export const trustRules = table("trust_rules", {
  id: id().primary(),
  organization_id: id().indexed(),
  name: string(100),
  issuer: string(255),
  /** Exact, or a prefix followed by one `*`. */
  subject: string(255),
  audience: string(255),
  /** Further claims, and the values that they must have. */
  claims: json(),
  scopes: string(255),
  created_by: key(CLIENT_ID),
  created_at: time(),
  last_used_at: time().nullable(),
});
export type TrustRuleRow = RowOf<typeof trustRules>;

export const ORGANIZATION_TABLES = [
  organizations,
  organizationUsage,
  memberships,
  invitations,
  approvedApps,
  trustRules,
] as const;
