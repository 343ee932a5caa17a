import type {
  AuthenticationResponseJSON,
  RegistrationResponseJSON,
  VerifiedRegistrationResponse,
} from "@simplewebauthn/server";
import type { Passkey, PasskeyStore } from "../../../adapters/accounts/second-factors/passkeys.ts";
import { parseIpAddress } from "../../http/ip-address.ts";
import type { Challenges } from "./challenges.ts";

const NAME = "linkgate";
// COSE: EdDSA, ES256 and RS256, which every authenticator has one of. The default adds one that Node warns about.
const ALGORITHMS = [-8, -7, -257];
const TIMEOUT_MS = 2 * 60 * 1000;

/** Options for the browser, serialized. */
type Options = string;

/** The WebAuthn relying party of this service. */
export type RelyingParty = {
  /** Returns the options to register a passkey. */
  registrationOptions(
    user: { id: string; username: string },
    known: Passkey[],
    purpose: string,
  ): Promise<Options>;
  /** Verifies a registration; undefined if it is invalid. */
  verifyRegistration(response: string, purpose: string): Promise<Registration | undefined>;
  /** Returns the options to sign in with one of these passkeys or, without any, with one that the user chooses. */
  authenticationOptions(purpose: string, passkeys?: Passkey[]): Promise<Options>;
  /**
   * Verifies that a browser has used a passkey; undefined if it has not.
   * @param requireUserVerification whether the authenticator must have checked a PIN or a biometric
   */
  verifyAuthentication(
    response: string,
    purpose: string,
    options: { requireUserVerification: boolean },
  ): Promise<Passkey | undefined>;
};

type Registration = NonNullable<VerifiedRegistrationResponse["registrationInfo"]>;

/** Loads the library when it is first needed: it is large, and most processes' first requests don't use it. */
const library = () => import("@simplewebauthn/server");

/** Creates the relying party. Its ID and origin come from `BASE_URL`; undefined if that is an IP address, which can't be one. */
export function createRelyingParty(
  base: string,
  challenges: Challenges,
  passkeys: Pick<PasskeyStore, "findByCredential" | "use">,
): RelyingParty | undefined {
  const { hostname: rpID } = new URL(base);
  if (parseIpAddress(rpID.replace(/^\[|\]$/g, ""))) return undefined;
  const expected = (purpose: string) => ({
    expectedChallenge: (challenge: string) => challenges.redeem(challenge, purpose),
    expectedOrigin: base,
    expectedRPID: rpID,
  });

  return {
    async registrationOptions({ id, username }, known, purpose) {
      const { generateRegistrationOptions } = await library();
      const options = await generateRegistrationOptions({
        rpName: NAME,
        rpID,
        userID: new Uint8Array(Buffer.from(id)),
        userName: username,
        userDisplayName: username,
        challenge: challenges.create(purpose),
        timeout: TIMEOUT_MS,
        supportedAlgorithmIDs: ALGORITHMS,
        excludeCredentials: known.map(toDescriptor),
        authenticatorSelection: { residentKey: "required", userVerification: "required" },
      });
      return JSON.stringify(options);
    },

    async verifyRegistration(text, purpose) {
      const response = parse<RegistrationResponseJSON>(text);
      if (!response) return undefined;
      const { verifyRegistrationResponse } = await library();
      const result = await verifyRegistrationResponse({
        response,
        ...expected(purpose),
        supportedAlgorithmIDs: ALGORITHMS,
      }).catch(rejected);
      return result?.verified ? result.registrationInfo : undefined;
    },

    async authenticationOptions(purpose, known) {
      const { generateAuthenticationOptions } = await library();
      const options = await generateAuthenticationOptions({
        rpID,
        challenge: challenges.create(purpose),
        timeout: TIMEOUT_MS,
        userVerification: known ? "discouraged" : "required",
        ...(known && { allowCredentials: known.map(toDescriptor) }),
      });
      return JSON.stringify(options);
    },

    async verifyAuthentication(text, purpose, { requireUserVerification }) {
      const response = parse<AuthenticationResponseJSON>(text);
      const passkey = response && (await passkeys.findByCredential(String(response.id)));
      if (!passkey || !namesUser(response, passkey.userId)) return undefined;
      const { verifyAuthenticationResponse } = await library();
      const result = await verifyAuthenticationResponse({
        response,
        ...expected(purpose),
        requireUserVerification,
        credential: {
          id: passkey.credentialId,
          publicKey: new Uint8Array(Buffer.from(passkey.publicKey, "base64url")),
          counter: passkey.counter,
        },
      }).catch(rejected);
      if (!result?.verified) return undefined;
      // WebAuthn §6.1.1: another use may have been recorded since the passkey was read
      return (await passkeys.use(passkey.id, result.authenticationInfo.newCounter)) ? passkey : undefined;
    },
  };
}

/** WebAuthn §7.2, step 6: the user handle, if any, must be the owner of the passkey. */
function namesUser({ response }: AuthenticationResponseJSON, userId: string): boolean {
  const handle = response?.userHandle;
  return !handle || Buffer.from(handle, "base64url").toString() === userId;
}

function toDescriptor({ credentialId: id, transports }: Passkey) {
  return { id, transports };
}

/** Parses what the browser's script has sent. */
function parse<Response extends object>(text: string): Response | undefined {
  try {
    const response: unknown = JSON.parse(text);
    return typeof response === "object" && response !== null ? (response as Response) : undefined;
  } catch {
    return undefined;
  }
}

/** The library throws for each response that it can't verify, and its messages repeat what the browser sent. */
function rejected(error: unknown): undefined {
  if (error instanceof Error) return undefined;
  throw error;
}
