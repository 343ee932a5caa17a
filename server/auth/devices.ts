import type { Context } from "koa";
import { KNOWN_DEVICE_MS, type KnownDeviceStore } from "../../adapters/accounts/known-devices.ts";
import { newSecret } from "../../adapters/crypto/ids.ts";
import { cookieOptions } from "../http/cookies.ts";
import { describeBrowser } from "../http/describe-browser.ts";
import { prefersHtml } from "../http/request-body.ts";
import { networkKeyOf } from "../rate-limits/ip-key.ts";

// What `newSecret` returns. No name of a program has this form.
const TOKEN = /^[\w-]{43}$/;

/** Recognizes the devices that users have signed in from by a cookie, which stays when they sign out. */
export type Devices = {
  /** Returns the device token of a request, if it has one; the user may not have signed in from there. */
  tokenOf(ctx: Context): string | undefined;
  /**
   * Remembers the device of a user who has signed in, with every factor, and sets its cookie. The user gets a notice if
   * the device was unknown, unless `silent`.
   */
  remember(ctx: Context, userId: string, options?: { silent?: boolean }): Promise<void>;
};

/** Creates the recognition of devices. */
export function createDevices(knownDevices: KnownDeviceStore, base: string): Devices {
  const { secure, ...options } = { ...cookieOptions({ base }), signed: false };
  // RFC 6265bis §4.1.3: `__Host-` requires https
  const name = secure ? "__Host-device" : "device";

  function tokenOf(ctx: Context): string | undefined {
    const token = ctx.cookies.get(name, { signed: false });
    return token && TOKEN.test(token) ? token : undefined;
  }

  return {
    tokenOf,

    async remember(ctx, userId, { silent = false } = {}) {
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
