import type { Context } from "koa";
import type { ReplayStore, SingleUse } from "../../../adapters/oauth/replay.ts";
import { cookieOptions } from "../../http/cookies.ts";
import type { SignInProof } from "../sign-in-proof.ts";
import { createSingleUseTokens } from "../single-use-tokens.ts";

/** How long a user has to prove the second factor, in seconds. */
export const LOGIN_TOKEN_S = 5 * 60;

/** A sign-in before its second factor. */
export type PendingSignIn = SingleUse & { proof: SignInProof; returnTo: string };

export type LoginTokens = ReturnType<typeof createLoginTokens>;

/** A program holds its pending sign-in as `login_token`, a browser in a cookie. Neither works as the other. */
export function createLoginTokens(secret: string, replays: Pick<ReplayStore, "useOnce">, base: string) {
  const lifetimeMs = LOGIN_TOKEN_S * 1000;
  const { create, read } = createSingleUseTokens<Omit<PendingSignIn, keyof SingleUse>>(
    secret,
    "pending sign-in",
    lifetimeMs,
  );
  // Unsigned: AES-GCM authenticates the value.
  const options = { ...cookieOptions({ base }), signed: false, path: "/auth" };
  const name = options.secure ? "__Secure-second-factor" : "second-factor";

  return {
    create: (proof: SignInProof) => create({ proof, returnTo: "" }, "program"),
    read: (token: string) => read(token, "program"),

    keep(ctx: Context, proof: SignInProof, returnTo: string): void {
      ctx.cookies.set(name, create({ proof, returnTo }, "browser"), { ...options, maxAge: lifetimeMs });
    },

    find: (ctx: Context) => read(ctx.cookies.get(name, options) ?? "", "browser"),

    drop: (ctx: Context) => void ctx.cookies.set(name, null, options),

    /** Resolves to true once: concurrent calls, in any process, resolve to false. */
    useOnce: (pending: PendingSignIn) => replays.useOnce(pending),
  };
}
