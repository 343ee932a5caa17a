import { hkdfSync, randomBytes } from "node:crypto";
import type { Context } from "koa";
import { createEncryption } from "../../../adapters/crypto/encryption.ts";
import type { ReplayStore, SingleUse } from "../../../adapters/oauth/replay.ts";
import { cookieOptions } from "../../http/cookies.ts";
import type { SignInProof } from "../sign-in-proof.ts";

/** How long a user has to prove the second factor, in seconds. */
export const LOGIN_TOKEN_S = 5 * 60;
const ID_BYTES = 16;
const KEY_BYTES = 32;

export type PendingSignIn = {
  id: string;
  proof: SignInProof;
  returnTo: string;
  /** In epoch milliseconds. */
  expiresAt: number;
};

/** The holder of a pending sign-in: a program, as `login_token`, or a browser, in a cookie. */
type Holder = "program" | "browser";

/** Encrypted pending sign-ins, so the server stores nothing before the second factor is proved. */
export type LoginTokens = ReturnType<typeof createLoginTokens>;

/** All processes share `secret`. */
export function createLoginTokens(secret: string, replays: Pick<ReplayStore, "useOnce">, base: string) {
  const encryption = createEncryption(
    new Uint8Array(hkdfSync("sha256", secret, "", "login token", KEY_BYTES)),
  );
  // Unsigned: AES-GCM authenticates the value.
  const options = { ...cookieOptions({ base }), signed: false, path: "/auth" };
  const name = options.secure ? "__Secure-second-factor" : "second-factor";

  function seal(proof: SignInProof, returnTo: string, holder: Holder): string {
    const id = randomBytes(ID_BYTES).toString("base64url");
    const expiresAt = Date.now() + LOGIN_TOKEN_S * 1000;
    return encryption.encrypt(JSON.stringify({ id, proof, returnTo, expiresAt }), holder);
  }

  function open(token: string, holder: Holder): PendingSignIn | undefined {
    try {
      const pending: PendingSignIn = JSON.parse(encryption.decrypt(token, holder));
      return pending.expiresAt > Date.now() ? pending : undefined;
    } catch {
      return undefined; // not ours, or modified
    }
  }

  return {
    create: (proof: SignInProof) => seal(proof, "", "program"),
    read: (token: string) => open(token, "program"),

    keep(ctx: Context, proof: SignInProof, returnTo: string): void {
      ctx.cookies.set(name, seal(proof, returnTo, "browser"), { ...options, maxAge: LOGIN_TOKEN_S * 1000 });
    },

    find: (ctx: Context) => open(ctx.cookies.get(name, options) ?? "", "browser"),

    drop: (ctx: Context) => void ctx.cookies.set(name, null, options),

    /** Resolves to true once: concurrent calls, in any process, resolve to false. */
    complete: (pending: PendingSignIn) => replays.useOnce(useOf(pending)),
  };
}

export function useOf({ id: jti, expiresAt }: PendingSignIn): SingleUse {
  return { issuer: "login token", jti, expiresAt };
}
