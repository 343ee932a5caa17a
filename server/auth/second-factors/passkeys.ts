import { randomBytes } from "node:crypto";
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import type { Context } from "koa";
import { z } from "zod";
import type {
  NewPasskey,
  Passkey,
  PasskeyStore,
} from "../../../adapters/accounts/second-factors/passkeys.ts";
import type { ReplayStore } from "../../../adapters/oauth/replay.ts";
import { parseJson } from "../../../resources/http/json-body.ts";
import { tryTo } from "../../../resources/try-to.ts";
import { parseIpAddress } from "../../http/client-ip.ts";
import { cookieOptions } from "../../http/cookies.ts";
import type { SignedInUser } from "../../http/state.ts";
import type { PasskeyOption } from "../../ui/sign-in.ts";
import { createSingleUseTokens } from "../single-use-tokens.ts";

const NAME = "linkgate";
const BROWSER_ID_BYTES = 16;
// COSE: EdDSA, ES256 and RS256, which every authenticator has one of. The default adds one that Node warns about.
const ALGORITHMS = [-8, -7, -257];
const TIMEOUT_MS = 2 * 60 * 1000;
// Long enough to read the page and find a security key.
const CHALLENGE_MS = 5 * 60 * 1000;

type Options = {
  base: string;
  /** All processes share it. */
  secret: string;
  replays: Pick<ReplayStore, "useOnce">;
  passkeys: Pick<PasskeyStore, "findByCredential" | "use">;
};

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

export type RelyingParty = NonNullable<ReturnType<typeof createRelyingParty>>;

/** Returns undefined if `BASE_URL` has an IP address, which can't be a relying party ID. */
export function createRelyingParty({ base, secret, replays, passkeys }: Options) {
  const { hostname: rpID } = new URL(base);
  if (parseIpAddress(rpID.replace(/^\[|\]$/g, ""))) return undefined;
  const browserIds = createBrowserIds(base);
  const { create, read } = createSingleUseTokens(secret, "passkey", CHALLENGE_MS);

  /** WebAuthn §13.4.3. `purpose` includes the browser or the session that the challenge is bound to. */
  const createChallenge = (purpose: string) => new Uint8Array(Buffer.from(create({}, purpose)));

  /** Resolves to true once: concurrent calls, in any process, resolve to false. `challenge` is in base64url. */
  async function redeem(challenge: string, purpose: string): Promise<boolean> {
    const token = read(Buffer.from(challenge, "base64url").toString(), purpose);
    return token !== undefined && replays.useOnce(token);
  }

  async function check<Result>(purpose: string, verify: (expected: Expected) => Promise<Result>) {
    const failures: unknown[] = [];
    const expectedChallenge = (challenge: unknown) =>
      redeem(String(challenge), purpose).catch((error) => {
        failures.push(error);
        return false;
      });
    const expected = { expectedChallenge, expectedOrigin: base, expectedRPID: rpID };
    // The library throws for each response that it can't verify, and its messages repeat what the browser sent.
    const result = await verify(expected).catch(() => undefined);
    // An outage isn't the fault of the passkey.
    if (failures.length > 0) throw failures[0];
    return result;
  }

  /** Without passkeys, the user chooses one. */
  async function authenticationOptions(purpose: string, known?: Passkey[]): Promise<string> {
    const { generateAuthenticationOptions } = await library();
    const options = await generateAuthenticationOptions({
      rpID,
      challenge: createChallenge(purpose),
      timeout: TIMEOUT_MS,
      userVerification: known ? "discouraged" : "required",
      ...(known && { allowCredentials: known.map(toDescriptor) }),
    });
    return JSON.stringify(options);
  }

  /** Resolves to undefined if the response is invalid. `requireUserVerification` asks for a PIN or a biometric. */
  async function verifyAuthentication(
    text: string,
    purpose: string,
    { requireUserVerification }: { requireUserVerification: boolean },
  ): Promise<Passkey | undefined> {
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
  }

  return {
    async registrationOptions(user: SignedInUser, known: Passkey[]): Promise<string> {
      const { generateRegistrationOptions } = await library();
      const options = await generateRegistrationOptions({
        rpName: NAME,
        rpID,
        userID: new Uint8Array(Buffer.from(user.id)),
        userName: user.username,
        userDisplayName: user.username,
        challenge: createChallenge(registrationPurposeOf(user)),
        timeout: TIMEOUT_MS,
        supportedAlgorithmIDs: ALGORITHMS,
        excludeCredentials: known.map(toDescriptor),
        authenticatorSelection: { residentKey: "required", userVerification: "required" },
      });
      return JSON.stringify(options);
    },

    /** Resolves to undefined if the response isn't one to this session, or is invalid. */
    async verifyRegistration(
      text: string,
      user: SignedInUser,
    ): Promise<Omit<NewPasskey, "name"> | undefined> {
      const response = parse<RegistrationResponseJSON>(text);
      if (!response) return undefined;
      const { verifyRegistrationResponse } = await library();
      const result = await check(registrationPurposeOf(user), (expected) =>
        verifyRegistrationResponse({ response, ...expected, supportedAlgorithmIDs: ALGORITHMS }),
      );
      if (!result?.verified) return undefined;
      const { credential, credentialDeviceType } = result.registrationInfo;
      return {
        credentialId: credential.id,
        publicKey: Buffer.from(credential.publicKey).toString("base64url"),
        counter: credential.counter,
        transports: credential.transports ?? [],
        synced: credentialDeviceType === "multiDevice",
      };
    },

    authenticationOptions,
    verifyAuthentication,

    /** Before a user has signed in, a challenge is bound to the browser. */
    signInOptions: (ctx: Context) => authenticationOptions(signInPurposeOf(browserIds.ensure(ctx))),

    verifySignIn: (ctx: Context, text: string) =>
      verifyAuthentication(text, signInPurposeOf(browserIds.find(ctx)), { requireUserVerification: true }),
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
  return tryTo(() => responseSchema.parse(parseJson(Buffer.from(text))) as Response);
}

export const PASSKEY_PATH = "/auth/passkey";

/** They recognize the browser to which a challenge was given. */
function createBrowserIds(base: string) {
  const options = { ...cookieOptions({ base }), signed: false, path: "/" };
  const name = options.secure ? "__Host-browser" : "browser";
  const find = (ctx: Context) => ctx.cookies.get(name, options) ?? "";
  return {
    find,
    ensure(ctx: Context): string {
      const existing = find(ctx);
      if (existing) return existing;
      const id = randomBytes(BROWSER_ID_BYTES).toString("base64url");
      ctx.cookies.set(name, id, options);
      return id;
    },
  };
}

export function createPasskeyOption(relyingParty: RelyingParty | undefined) {
  return async (ctx: Context, returnTo: string): Promise<PasskeyOption | undefined> =>
    relyingParty && {
      action: PASSKEY_PATH,
      options: await relyingParty.signInOptions(ctx),
      fields: { return_to: returnTo },
    };
}

function registrationPurposeOf({ sessionId }: SignedInUser): string {
  return `registration ${sessionId}`;
}

function signInPurposeOf(browserId: string): string {
  return `sign-in ${browserId}`;
}
