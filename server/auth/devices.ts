import type { Context } from "koa";
import { KNOWN_DEVICE_MS, type KnownDeviceStore } from "../../adapters/accounts/known-devices.ts";
import { newSecret } from "../../adapters/crypto/ids.ts";
import { networkKeyOf } from "../http/client-ip.ts";
import { cookieOptions } from "../http/cookies.ts";
import { describeBrowser } from "../http/describe-browser.ts";
import { prefersHtml } from "../http/request-body.ts";

// What `newSecret` returns. No name of a program has this form.
const TOKEN = /^[\w-]{43}$/;

/** Recognizes known devices by a cookie, which stays after a sign-out. */
export type Devices = ReturnType<typeof createDevices>;

export function createDevices(knownDevices: KnownDeviceStore, base: string) {
  const { secure, ...options } = { ...cookieOptions({ base }), signed: false };
  // RFC 6265bis §4.1.3: `__Host-` requires https
  const name = secure ? "__Host-device" : "device";

  function tokenOf(ctx: Context): string | undefined {
    const token = ctx.cookies.get(name, { signed: false });
    return token && TOKEN.test(token) ? token : undefined;
  }

  return {
    tokenOf,

    /** Sets the cookie after a sign-in with every factor. Notifies the user of an unknown device, unless `silent`. */
    async remember(
      ctx: Context,
      userId: string,
      { silent = false }: { silent?: boolean } = {},
    ): Promise<void> {
      const description = describeBrowser(ctx.get("user-agent"));
      const known = tokenOf(ctx);
      // A program that keeps no cookies is recognized by its name and network.
      const token = known ?? (prefersHtml(ctx) ? newSecret("") : `${description} ${networkKeyOf(ctx.ip)}`);
      await knownDevices.remember(userId, { token, description }, silent ? undefined : ctx.ip);
      if (!TOKEN.test(token)) return;
      ctx.cookies.set(name, token, { ...options, secure, path: "/", maxAge: KNOWN_DEVICE_MS });
    },
  };
}
