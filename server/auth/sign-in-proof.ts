import { credentialOf, type IdentityKey } from "../../adapters/accounts/identities.ts";
import { epochSeconds, type Method, MULTIPLE_FACTORS } from "../provider/seams/session-model.ts";

export type SignInProof = {
  accountId: string;
  methods: Method[];
  /** Authentication method references (RFC 8176). */
  amr: string[];
  /** In epoch seconds; absent if the identity provider doesn't say when. */
  provedAt?: number | undefined;
  /** The passkey or, hashed, the SSO identity that the sign-in began with, if any. Removing it ends the session. */
  credential?: string | undefined;
  passkey?: string | undefined;
  passwordMark?: string | undefined;
};

const AMR_MAX = 10;
const SECOND_FACTORS: Method[] = ["totp", "passkey", "recovery_code"];
const AMR_OF = { totp: ["otp"], passkey: ["swk", "hwk", "user"] };

export function passwordProof(accountId: string, passwordMark?: string): SignInProof {
  return { accountId, methods: ["password"], amr: ["pwd"], provedAt: epochSeconds(), passwordMark };
}

/** The identity provider's own methods count. */
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

/** The authenticator verified the user, which makes the passkey two factors. */
export function passkeyProof(accountId: string, passkey: { id: string; synced: boolean }): SignInProof {
  return {
    accountId,
    methods: ["passkey"],
    amr: [keyReference(passkey), "user", MULTIPLE_FACTORS],
    provedAt: epochSeconds(),
    credential: passkey.id,
  };
}

export type FactorProof = {
  method: "totp" | "recovery_code" | "passkey";
  amr: string;
  /** Removing the passkey ends the session. */
  credential?: string;
};

/** A passkey that may be copied between devices is a software-secured key. */
export function keyReference({ synced }: { synced: boolean }): string {
  return synced ? "swk" : "hwk";
}

export function withFactor<Proof extends Pick<SignInProof, "methods" | "amr">>(
  proof: Proof,
  { method, amr }: FactorProof,
): Proof {
  const methods = [...new Set([...proof.methods, method])];
  return { ...proof, methods, amr: [...new Set([...proof.amr, amr, MULTIPLE_FACTORS])] };
}

/** The rest of a proof is multi-factor only with another second factor. */
export function withoutFactor<Proof extends Pick<SignInProof, "methods" | "amr">>(
  proof: Proof,
  method: "totp" | "passkey",
): Proof {
  const methods = proof.methods.filter((one) => one !== method);
  const isMultiFactor = methods.some((one) => SECOND_FACTORS.includes(one));
  const removed = isMultiFactor ? AMR_OF[method] : [...AMR_OF[method], MULTIPLE_FACTORS];
  return { ...proof, methods, amr: proof.amr.filter((one) => !removed.includes(one)) };
}
