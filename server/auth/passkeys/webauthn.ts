import type {
  AuthenticationResponseJSON,
  RegistrationResponseJSON,
  VerifiedRegistrationResponse,
} from "@simplewebauthn/server";
import { z } from "zod";
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

type Expected = {
  expectedChallenge: (challenge: unknown) => Promise<boolean>;
  expectedOrigin: string;
  expectedRPID: string;
};

const base64url = z.string().regex(/^[\w-]+$/);
const responseSchema = z.looseObject({
  id: base64url,
  rawId: base64url,
  response: z.looseObject({
    clientDataJSON: z.string(),
    userHandle: z.string().nullish(),
    transports: z
      .array(z.string().regex(/^[\w-]{1,20}$/))
      .max(10)
      .nullish(),
  }),
});

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

  /** Runs a verification of the library; undefined if the response is invalid. */
  async function check<Result>(purpose: string, verify: (expected: Expected) => Promise<Result>) {
    const failures: unknown[] = [];
    const expectedChallenge = (challenge: unknown) =>
      challenges.redeem(String(challenge), purpose).catch((error) => {
        failures.push(error);
        return false;
      });
    // The library throws for each response that it can't verify, and its messages repeat what the browser sent.
    const result = await verify({ expectedChallenge, expectedOrigin: base, expectedRPID: rpID }).catch(
      rejected,
    );
    // An outage isn't the fault of the passkey.
    if (failures.length > 0) throw failures[0];
    return result;
  }

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
      const result = await check(purpose, (expected) =>
        verifyRegistrationResponse({ response, ...expected, supportedAlgorithmIDs: ALGORITHMS }),
      );
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
      const passkey = response && (await passkeys.findByCredential(response.id));
      if (!passkey || !namesUser(response, passkey.userId)) return undefined;
      const { verifyAuthenticationResponse } = await library();
      const { credentialId: id, counter } = passkey;
      const publicKey = new Uint8Array(Buffer.from(passkey.publicKey, "base64url"));
      const credential = { id, publicKey, counter };
      const result = await check(purpose, (expected) =>
        verifyAuthenticationResponse({ response, ...expected, requireUserVerification, credential }),
      );
      if (!result?.verified) return undefined;
      // WebAuthn §6.1.1: another use may have been recorded since the passkey was read
      return (await passkeys.use(passkey.id, result.authenticationInfo.newCounter)) ? passkey : undefined;
    },
  };
}

/** WebAuthn §7.2, step 6: the user handle, if any, must be the owner of the passkey. */
function namesUser({ response }: AuthenticationResponseJSON, userId: string): boolean {
  const handle = response.userHandle;
  return !handle || Buffer.from(handle, "base64url").toString() === userId;
}

function toDescriptor({ credentialId: id, transports }: Passkey) {
  return { id, transports };
}

/** Parses what the browser's script has sent: the members that the library or this file reads without checking them. */
function parse<Response extends object>(text: string): Response | undefined {
  try {
    return responseSchema.parse(JSON.parse(text)) as Response;
  } catch {
    return undefined;
  }
}

/** The library throws errors of this kind only; anything else is a defect. */
function rejected(error: unknown): undefined {
  if (error instanceof Error) return undefined;
  throw error;
}
