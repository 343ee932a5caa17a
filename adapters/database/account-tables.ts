import type { Flag, Json, Time } from "./tables.ts";

export type UserRow = {
  id: string;
  username: string;
  username_key: string;
  password_hash: string | null;
  created_at: Time;
  disabled_at: Time | null;
  email: string | null;
  disabled_reason: string | null;
};

export type IdentityRow = {
  issuer: string;
  subject: string;
  user_id: string;
  label: string | null;
  created_at: Time;
};

/** A browser that a user has signed in from, or a program and its network. */
export type KnownDeviceRow = {
  user_id: string;
  token_hash: string;
  description: string;
  created_at: Time;
  last_used_at: Time;
  expires_at: Time;
  failures: number;
};

/** Consecutive wrong passwords for a username from unknown devices, or wrong codes of an authenticator app. */
export type SignInFailureRow = {
  account_key: string;
  failures: number;
  next_attempt_at: Time;
  expires_at: Time | null;
};

export type OneTimeLinkRow = {
  id_hash: string;
  purpose: "password_reset" | "email_confirmation";
  user_id: string;
  /** A user id or `operator`. A link without a creator can't be used. */
  created_by: string | null;
  /** The organization that an owner acted for. Null for the operator. */
  organization_id: string | null;
  created_at: Time;
  expires_at: Time;
  used_at: Time | null;
  email: string | null;
};

export type NoticeKind =
  | "new_device"
  | "password_changed"
  | "reset_link_created"
  | "reset_link_used"
  | "identity_linked"
  | "identity_unlinked"
  | "second_factor_added"
  | "second_factor_removed"
  | "recovery_code_used"
  | "recovery_codes_created"
  | "email_changed"
  | "account_locked"
  | "second_factor_locked"
  | "credential_leaked";

export type NoticeRow = {
  id: string;
  user_id: string;
  kind: NoticeKind;
  data: Json;
  created_at: Time;
  expires_at: Time;
  dismissed_at: Time | null;
};

export type MailKind = NoticeKind | "invitation" | "password_reset" | "email_confirmation";

export type MailRow = {
  id: string;
  user_id: string | null;
  recipient: string | null;
  kind: MailKind;
  data: Json;
  secret: string | null;
  attempts: number;
  due_at: Time | null;
  leased_by: string | null;
  created_at: Time;
  expires_at: Time;
};

export type TotpSecretRow = {
  user_id: string;
  secret: string;
  created_at: Time;
  confirmed_at: Time | null;
  last_step: number | null;
  last_used_at: Time | null;
};

export type RecoveryCodeRow = {
  code_hash: string;
  user_id: string;
  created_at: Time;
  used_at: Time | null;
};

export type PasskeyRow = {
  id: string;
  user_id: string;
  credential_hash: string;
  credential_id: string;
  public_key: string;
  counter: number;
  transports: string;
  synced: Flag;
  name: string;
  created_at: Time;
  last_used_at: Time | null;
};
