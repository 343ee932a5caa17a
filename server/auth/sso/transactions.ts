import { createHash } from "node:crypto";
import type { Context } from "koa";
import { cookieOptions } from "../provider/cookies.ts";
import type { Secrets } from "./identity-provider.ts";

const LIFETIME_MS = 10 * 60 * 1000;
const PATH = "/auth/sso";

/** A sign-in under way at the identity provider. */
export type Transaction = {
  secrets: Secrets;
  returnTo: string;
  /** The person who links the identity to the account, signed in here already. */
  linkTo?: string;
  /** Epoch milliseconds. */
  until: number;
};

/** Sign-ins under way, each in a signed cookie of its own, so that several at once do not meet. */
export type Transactions = {
  keep(ctx: Context, transaction: Omit<Transaction, "until">): void;
  /** The one that a `state` belongs to, if this browser began it not long ago; good once. */
  take(ctx: Context, state: unknown): Transaction | undefined;
};

/** Makes the keeper of them. */
export function createTransactions(base: string): Transactions {
  const options = { ...cookieOptions({ base }), path: PATH };
  const prefix = options.secure ? "__Secure-sso-" : "sso-";
  // The name shows which sign-in it is, without saying its state.
  const nameOf = (state: string) => prefix + createHash("sha256").update(state).digest("hex").slice(0, 16);

  return {
    keep(ctx, transaction) {
      const until = Date.now() + LIFETIME_MS;
      const text = Buffer.from(JSON.stringify({ ...transaction, until })).toString("base64url");
      ctx.cookies.set(nameOf(transaction.secrets.state), text, { ...options, maxAge: LIFETIME_MS });
    },

    take(ctx, state) {
      if (typeof state !== "string") return undefined;
      const name = nameOf(state);
      const text = ctx.cookies.get(name, options);
      if (!text) return undefined;
      ctx.cookies.set(name, null, options);
      const transaction: Transaction = JSON.parse(Buffer.from(text, "base64url").toString());
      const isGood = transaction.secrets.state === state && transaction.until > Date.now();
      return isGood ? transaction : undefined;
    },
  };
}
