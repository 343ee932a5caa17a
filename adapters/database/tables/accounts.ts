import {
  count,
  EMAIL,
  flag,
  hash,
  id,
  integer,
  json,
  key,
  type RowOf,
  string,
  table,
  text,
  time,
} from "./columns.ts";

const KIND = 40;

export const users = table("users", {
  id: id().primary(),
  username: string(64),
  username_key: key(64).unique(),
  password_hash: string(255).nullable(),
  created_at: time(),
  disabled_at: time().nullable(),
  disabled_reason: string(255).nullable(),
  /** Once it is confirmed. */
  email: string(EMAIL).nullable(),
});
export type UserRow = RowOf<typeof users>;

/** A user at an identity provider. Only issuer and subject are unique and stable (OIDC Core §5.7). */
export const identities = table(
  "identities",
  {
    issuer: key(255),
    subject: key(255),
    user_id: id().indexed(),
    label: string(255).nullable(),
    created_at: time(),
  },
  { primary: ["issuer", "subject"] },
);

export const oneTimeLinks = table(
  "one_time_links",
  {
    id_hash: hash().primary(),
    purpose: string(32).as<"password_reset" | "email_confirmation">(),
    user_id: id().indexed(),
    created_at: time(),
    expires_at: time().indexed(),
    used_at: time().nullable(),
    /** A user id or `operator`. A link without a creator can't be used. */
    created_by: id().indexed().nullable(),
    /** The organization that an owner acted for. Null for the operator. */
    organization_id: id().nullable(),
    /** That the link confirms. */
    email: string(EMAIL).nullable(),
  },
  { purged: {} },
);
export type OneTimeLinkRow = RowOf<typeof oneTimeLinks>;

/** A browser that a user has signed in from, or a program and its network. */
export const knownDevices = table(
  "known_devices",
  {
    user_id: id(),
    token_hash: hash(),
    description: string(100),
    created_at: time(),
    last_used_at: time(),
    expires_at: time().indexed(),
    failures: integer().default(0),
  },
  { primary: ["user_id", "token_hash"], purged: {} },
);

/** Consecutive wrong passwords for a username from unknown devices, or wrong codes of an authenticator app. */
export const signInFailures = table(
  "sign_in_failures",
  {
    /** SHA-256 of the normalized username, of existing and unknown users alike. */
    account_key: hash().primary(),
    failures: integer(),
    next_attempt_at: time(),
    /** Null for existing users. */
    expires_at: time().indexed().nullable(),
  },
  // Anyone can add unknown usernames.
  { purged: { max: 20_000 } },
);

export const totpSecrets = table("totp_secrets", {
  user_id: id().primary(),
  secret: string(255).encrypted("totp"),
  created_at: time(),
  /** Null until the user has entered a code. */
  confirmed_at: time().nullable(),
  /** The newest time step whose code was accepted. */
  last_step: count().nullable(),
  last_used_at: time().nullable(),
});
export type TotpSecretRow = RowOf<typeof totpSecrets>;

export const recoveryCodes = table("recovery_codes", {
  code_hash: hash().primary(),
  user_id: id().indexed(),
  created_at: time(),
  used_at: time().nullable(),
});

export const passkeys = table("passkeys", {
  id: id().primary(),
  user_id: id().indexed(),
  /** A credential ID has up to 1,023 bytes (WebAuthn §4), too many for an index. */
  credential_hash: hash().unique(),
  credential_id: text(),
  public_key: text(),
  counter: count(),
  transports: string(255),
  synced: flag(),
  name: string(100),
  created_at: time(),
  last_used_at: time().nullable(),
});
export type PasskeyRow = RowOf<typeof passkeys>;

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

export const notices = table(
  "notices",
  {
    id: id().primary(),
    user_id: id(),
    kind: string(KIND).as<NoticeKind>(),
    /** Without secrets. */
    data: json(),
    created_at: time(),
    expires_at: time().indexed(),
    dismissed_at: time().nullable(),
  },
  { indexes: [["user_id", "kind"]], purged: {} },
);

export type MailKind = NoticeKind | "invitation" | "password_reset" | "email_confirmation";

export const mails = table(
  "mails",
  {
    id: id().primary(),
    /** Whom it is for or from. Null until it is known. */
    user_id: id().indexed().nullable(),
    /** Null until it is known. */
    recipient: string(EMAIL).indexed().nullable(),
    kind: string(KIND).as<MailKind>(),
    /** Without secrets. */
    data: json(),
    /** A token. */
    secret: text().encrypted("mail").nullable(),
    attempts: integer().default(0),
    /** Null once it is sent. */
    due_at: time().indexed().nullable(),
    leased_by: string(40).nullable(),
    created_at: time(),
    expires_at: time().indexed(),
  },
  { purged: {} },
);
export type MailRow = RowOf<typeof mails>;

export const ACCOUNT_TABLES = [
  users,
  identities,
  oneTimeLinks,
  knownDevices,
  signInFailures,
  totpSecrets,
  recoveryCodes,
  passkeys,
  notices,
  mails,
] as const;
