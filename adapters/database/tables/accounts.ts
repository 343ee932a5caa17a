import * as t from "./columns.ts";

const KIND = 40;

export const users = t.table("users", {
  id: t.id().primary(),
  username: t.string(64),
  username_key: t.key(64).unique(),
  password_hash: t.string(255).nullable(),
  created_at: t.time(),
  disabled_at: t.time().nullable(),
  disabled_reason: t.string(255).nullable(),
  /** Once it is confirmed. */
  email: t.string(t.EMAIL).nullable(),
  /** Changed by `lockUser`. */
  locked_at: t.time().nullable(),
});
export type UserRow = t.RowOf<typeof users>;

/** A user at an identity provider. Only issuer and subject are unique and stable (OIDC Core §5.7). */
export const identities = t.table(
  "identities",
  {
    issuer: t.key(255),
    subject: t.key(255),
    user_id: t.id().indexed(),
    label: t.string(255).nullable(),
    created_at: t.time(),
  },
  { primary: ["issuer", "subject"] },
);

export const oneTimeLinks = t.table(
  "one_time_links",
  {
    id_hash: t.hash().primary(),
    purpose: t.string(32).as<"password_reset" | "email_confirmation">(),
    user_id: t.id().indexed(),
    created_at: t.time(),
    expires_at: t.time().indexed(),
    used_at: t.time().nullable(),
    /** A user id or `operator`. A link without a creator can't be used. */
    created_by: t.id().indexed().nullable(),
    /** The organization that an owner acted for. Null for the operator. */
    organization_id: t.id().nullable(),
    /** That the link confirms. */
    email: t.string(t.EMAIL).nullable(),
  },
  { purged: {} },
);
export type OneTimeLinkRow = t.RowOf<typeof oneTimeLinks>;

/** A browser that a user has signed in from, or a program and its network. */
export const knownDevices = t.table(
  "known_devices",
  {
    user_id: t.id(),
    token_hash: t.hash(),
    description: t.string(100),
    created_at: t.time(),
    last_used_at: t.time(),
    expires_at: t.time().indexed(),
    failures: t.integer().default(0),
  },
  { primary: ["user_id", "token_hash"], purged: {} },
);

/** Consecutive wrong passwords for a username from unknown devices, or wrong codes of an authenticator app. */
export const signInFailures = t.table(
  "sign_in_failures",
  {
    /** SHA-256 of the normalized username, of existing and unknown users alike. */
    account_key: t.hash().primary(),
    failures: t.integer(),
    next_attempt_at: t.time(),
    /** Null for existing users. */
    expires_at: t.time().indexed().nullable(),
  },
  // Anyone can add unknown usernames.
  { purged: { max: 20_000 } },
);

export const totpSecrets = t.table("totp_secrets", {
  user_id: t.id().primary(),
  secret: t.string(255).encrypted("totp"),
  created_at: t.time(),
  /** Null until the user has entered a code. */
  confirmed_at: t.time().nullable(),
  /** The newest time step whose code was accepted. */
  last_step: t.count().nullable(),
  last_used_at: t.time().nullable(),
});
export type TotpSecretRow = t.RowOf<typeof totpSecrets>;

export const recoveryCodes = t.table("recovery_codes", {
  code_hash: t.hash().primary(),
  user_id: t.id().indexed(),
  created_at: t.time(),
  used_at: t.time().nullable(),
});

export const passkeys = t.table("passkeys", {
  id: t.id().primary(),
  user_id: t.id().indexed(),
  /** A credential ID has up to 1,023 bytes (WebAuthn §4), too many for an index. */
  credential_hash: t.hash().unique(),
  credential_id: t.text(),
  public_key: t.text(),
  counter: t.count(),
  transports: t.string(255),
  synced: t.flag(),
  name: t.string(100),
  created_at: t.time(),
  last_used_at: t.time().nullable(),
});
export type PasskeyRow = t.RowOf<typeof passkeys>;

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
  | "credential_leaked"
  | "domain_record_lost"
  | "domain_taken_over";

export const notices = t.table(
  "notices",
  {
    id: t.id().primary(),
    user_id: t.id(),
    kind: t.string(KIND).as<NoticeKind>(),
    /** Without secrets. */
    data: t.json(),
    created_at: t.time(),
    expires_at: t.time().indexed(),
    dismissed_at: t.time().nullable(),
  },
  { indexes: [["user_id", "kind"]], purged: {} },
);

export type MailKind = NoticeKind | "invitation" | "password_reset" | "email_confirmation";

export const mails = t.table(
  "mails",
  {
    id: t.id().primary(),
    /** Whom it is for or from. Null until it is known. */
    user_id: t.id().indexed().nullable(),
    /** Null until it is known. */
    recipient: t.string(t.EMAIL).indexed().nullable(),
    kind: t.string(KIND).as<MailKind>(),
    /** Without secrets. */
    data: t.json(),
    /** A token. */
    secret: t.text().encrypted("mail").nullable(),
    attempts: t.integer().default(0),
    /** Null once it is sent. */
    due_at: t.time().indexed().nullable(),
    leased_by: t.string(40).nullable(),
    created_at: t.time(),
    expires_at: t.time().indexed(),
  },
  { purged: {} },
);
export type MailRow = t.RowOf<typeof mails>;

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
