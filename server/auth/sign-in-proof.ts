import { credentialOf, type IdentityKey } from "../../adapters/accounts/identities.ts";
import type { Method } from "../provider/sessions.ts";
import { MULTIPLE_FACTORS } from "../provider/sessions.ts";

/** What a user has proved while signing in. */
export type SignInProof = {
  accountId: string;
  methods: Method[];
  /** Authentication method references (RFC 8176). */
  amr: string[];
  /** When the user proved it: epoch seconds. Absent if the identity provider doesn't say when. */
  provedAt?: number | undefined;
  /** The passkey or, hashed, the SSO identity that the sign-in began with, if any. Removing it ends the session. */
  credential?: string | undefined;
  /** The passkey that was the second factor. */
  passkey?: string | undefined;
  /** Identifies the password that was entered. */
  passwordMark?: string | undefined;
};

const AMR_MAX = 10;
const SECOND_FACTORS: Method[] = ["totp", "passkey", "recovery_code"];
const AMR_OF = { totp: ["otp"], passkey: ["swk", "hwk", "user"] };

/** Returns the proof of a password that was just entered. */
export function passwordProof(accountId: string, passwordMark?: string): SignInProof {
  return { accountId, methods: ["password"], amr: ["pwd"], provedAt: epochSeconds(), passwordMark };
}

/** Returns the proof of an SSO sign-in. The identity provider's own methods count. */
export function ssoProof(
  accountId: string,
  identity: IdentityKey & { authenticatedAt?: number; amr?: string[] },
): SignInProof {
  return {
    accountId,
    methods: ["sso"],
    amr: (identity.amr ?? []).slice(0, AMR_MAX),
    provedAt: identity.authenticatedAt && Math.min(identity.authenticatedAt, epochSeconds()),
    credential: credentialOf(identity),
  };
}

/** Returns the proof of a passkey whose authenticator verified the user, which makes it two factors. */
export function passkeyProof(accountId: string, passkey: { id: string; synced: boolean }): SignInProof {
  return {
    accountId,
    methods: ["passkey"],
    amr: [keyReference(passkey), "user", MULTIPLE_FACTORS],
    provedAt: epochSeconds(),
    credential: passkey.id,
  };
}

/** A second factor that was just proved. */
export type FactorProof = {
  method: "totp" | "recovery_code" | "passkey";
  amr: string;
  /** The passkey. Removing it ends the session. */
  credential?: string;
};

/** Returns the reference of a passkey: one that may be copied between devices is a software-secured key. */
export function keyReference({ synced }: { synced: boolean }): string {
  return synced ? "swk" : "hwk";
}

/** Adds a second factor to a proof. */
export function withFactor<Proof extends Pick<SignInProof, "methods" | "amr">>(
  proof: Proof,
  { method, amr }: FactorProof,
): Proof {
  const methods = [...new Set([...proof.methods, method])];
  return { ...proof, methods, amr: [...new Set([...proof.amr, amr, MULTIPLE_FACTORS])] };
}

/** Removes a second factor from a proof. The rest is multi-factor only with another one. */
export function withoutFactor<Proof extends Pick<SignInProof, "methods" | "amr">>(
  proof: Proof,
  method: "totp" | "passkey",
): Proof {
  const methods = proof.methods.filter((one) => one !== method);
  const isMultiFactor = methods.some((one) => SECOND_FACTORS.includes(one));
  const removed = isMultiFactor ? AMR_OF[method] : [...AMR_OF[method], MULTIPLE_FACTORS];
  return { ...proof, methods, amr: proof.amr.filter((one) => !removed.includes(one)) };
}

export function epochSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
