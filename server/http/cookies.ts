import type { PublicUrls } from "../../resources/access/resource-metadata.ts";

export function cookieOptions({ base }: Pick<PublicUrls, "base">) {
  const secure = base.startsWith("https:");
  return { httpOnly: true, sameSite: "lax", secure, signed: true, overwrite: true } as const;
}

export function sessionCookieOf({ base }: Pick<PublicUrls, "base">): string {
  return base.startsWith("https:") ? "__Host-session" : "session";
}
