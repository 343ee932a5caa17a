import type { Configuration } from "oidc-provider";
import type { Addresses } from "../../resources/metadata.ts";
import type { Keys } from "./keys.ts";

/** What every cookie of ours is: for the server alone, signed, and not sent with the forms of other sites. */
export function cookieOptions({ base }: Pick<Addresses, "base">) {
  const secure = base.startsWith("https:");
  return { httpOnly: true, sameSite: "lax", secure, signed: true, overwrite: true } as const;
}

/** RFC 6265bis §4.1.3: `__Host-` and `__Secure-` need https, so plain names on loopback. */
export function cookies(addresses: Addresses, keys: Keys): Configuration["cookies"] {
  const options = cookieOptions(addresses);
  return {
    keys: keys.cookies,
    names: {
      session: options.secure ? "__Host-session" : "session",
      interaction: options.secure ? "__Secure-interaction" : "interaction",
      resume: options.secure ? "__Secure-resume" : "resume",
    },
    long: { ...options, path: "/" },
    short: options,
  };
}
