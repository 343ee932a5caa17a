import type { Flag, Time } from "./tables.ts";

export type TotpSecretRow = {
  user_id: string;
  /** Encrypted. */
  secret: string;
  created_at: Time;
  /** Null until the user has entered a code. */
  confirmed_at: Time | null;
  /** The newest time step whose code was accepted. */
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
  /** The COSE key in base64url. */
  public_key: string;
  counter: number;
  /** Separated by spaces. */
  transports: string;
  /** Whether the passkey may be copied to other devices of the user. */
  synced: Flag;
  name: string;
  created_at: Time;
  last_used_at: Time | null;
};
