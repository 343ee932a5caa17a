import { createHash } from "node:crypto";
import type { Context } from "koa";
import { cookieOptions } from "../../http/cookies.ts";
import type { TransactionSecrets } from "./identity-provider.ts";

const LIFETIME_MS = 10 * 60 * 1000;
const PATH = "/auth/sso";
// Some ten sign-ins. Node rejects requests whose headers have more than 16 KB in total.
const MAX_LENGTH = 4096;

export type Transaction = {
  secrets: TransactionSecrets;
  returnTo: string;
  /** The ID of the signed-in user. */
  linkTo?: string;
  /** In epoch milliseconds. */
  until: number;
};

/** Each sign-in has its own signed cookie, so concurrent ones don't interfere. */
export function createTransactions(base: string) {
  const options = { ...cookieOptions({ base }), path: PATH };
  const prefix = options.secure ? "__Secure-sso-" : "sso-";
  // The name identifies the sign-in without containing its state.
  const nameOf = (state: string) => prefix + createHash("sha256").update(state).digest("hex").slice(0, 16);

  /** RFC 6265 §5.4: browsers send the oldest cookies of a path first. */
  function dropOldest(ctx: Context, newest: string): void {
    const others = (ctx.get("cookie").match(/[^\s;]+/g) ?? [])
      .map((pair) => pair.split("=") as [name: string, text?: string])
      .filter(([name]) => name.startsWith(prefix) && !name.endsWith(".sig"));
    let total = newest.length;
    for (const [name, text = ""] of others.toReversed()) {
      total += text.length;
      if (total > MAX_LENGTH) ctx.cookies.set(name, null, options);
    }
  }

  return {
    keep(ctx: Context, transaction: Omit<Transaction, "until">): void {
      const until = Date.now() + LIFETIME_MS;
      const text = Buffer.from(JSON.stringify({ ...transaction, until })).toString("base64url");
      dropOldest(ctx, text);
      ctx.cookies.set(nameOf(transaction.secrets.state), text, { ...options, maxAge: LIFETIME_MS });
    },

    /** Deletes the sign-in of a `state`; undefined unless this browser started it and it hasn't expired. */
    take(ctx: Context, state: unknown): Transaction | undefined {
      if (typeof state !== "string") return undefined;
      const name = nameOf(state);
      const text = ctx.cookies.get(name, options);
      if (!text) return undefined;
      ctx.cookies.set(name, null, options);
      const transaction: Transaction = JSON.parse(Buffer.from(text, "base64url").toString());
      const isValid = transaction.secrets.state === state && transaction.until > Date.now();
      return isValid ? transaction : undefined;
    },
  };
}
