import { randomBytes } from "node:crypto";
import type { Context } from "koa";
import { cookieOptions } from "../../http/cookies.ts";

const BYTES = 16;

/** Recognizes the browser to which a challenge was given, before a user has signed in. */
export type BrowserIds = {
  /** Returns the ID of the browser, which gets one if it has none. */
  ensure(ctx: Context): string;
  /** Returns the ID of the browser; empty if it has none. */
  find(ctx: Context): string;
};

export function createBrowserIds(base: string): BrowserIds {
  const options = { ...cookieOptions({ base }), signed: false, path: "/" };
  const name = options.secure ? "__Host-browser" : "browser";
  const find = (ctx: Context) => ctx.cookies.get(name, options) ?? "";
  return {
    find,
    ensure(ctx) {
      const existing = find(ctx);
      if (existing) return existing;
      const id = randomBytes(BYTES).toString("base64url");
      ctx.cookies.set(name, id, options);
      return id;
    },
  };
}
