import type { Configuration } from "oidc-provider";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { Keys } from "../keys/shared-keys.ts";

/** Returns the options of all our cookies: hidden from scripts, signed, and not sent with forms on other sites. */
export function cookieOptions({ base }: Pick<PublicUrls, "base">) {
  const secure = base.startsWith("https:");
  return { httpOnly: true, sameSite: "lax", secure, signed: true, overwrite: true } as const;
}

/** Configures the library's cookies. RFC 6265bis §4.1.3: `__Host-` and `__Secure-` require https, so not on loopback. */
export function cookies(urls: PublicUrls, keys: Keys): Configuration["cookies"] {
  const options = cookieOptions(urls);
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
