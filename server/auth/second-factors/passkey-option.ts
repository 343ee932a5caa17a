import { randomBytes } from "node:crypto";
import type { Context } from "koa";
import { cookieOptions } from "../../http/cookies.ts";
import type { PasskeyOption } from "../../ui/sign-in.ts";
import type { RelyingParty } from "./passkeys.ts";

export const PASSKEY_PATH = "/auth/passkey";
const BYTES = 16;

/** They recognize the browser to which a challenge was given, before a user has signed in. */
export function createBrowserIds(base: string) {
  const options = { ...cookieOptions({ base }), signed: false, path: "/" };
  const name = options.secure ? "__Host-browser" : "browser";
  const find = (ctx: Context) => ctx.cookies.get(name, options) ?? "";
  return {
    find,
    ensure(ctx: Context): string {
      const existing = find(ctx);
      if (existing) return existing;
      const id = randomBytes(BYTES).toString("base64url");
      ctx.cookies.set(name, id, options);
      return id;
    },
  };
}

export function createPasskeyOption(
  relyingParty: RelyingParty | undefined,
  browserIds: ReturnType<typeof createBrowserIds>,
) {
  return async (ctx: Context, returnTo: string): Promise<PasskeyOption | undefined> =>
    relyingParty && {
      action: PASSKEY_PATH,
      options: await relyingParty.authenticationOptions(signInPurposeOf(browserIds.ensure(ctx))),
      fields: { return_to: returnTo },
    };
}

export function signInPurposeOf(browserId: string): string {
  return `sign-in ${browserId}`;
}
