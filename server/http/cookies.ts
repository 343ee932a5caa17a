import type { PublicUrls } from "../../resources/access/resource-metadata.ts";

/** Returns the options of all our cookies: hidden from scripts, signed, and not sent with forms on other sites. */
export function cookieOptions({ base }: Pick<PublicUrls, "base">) {
  const secure = base.startsWith("https:");
  return { httpOnly: true, sameSite: "lax", secure, signed: true, overwrite: true } as const;
}
