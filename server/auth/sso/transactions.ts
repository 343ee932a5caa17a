import { createHash } from "node:crypto";
import type { Context } from "koa";
import { cookieOptions } from "../../provider/cookies.ts";
import type { TransactionSecrets } from "./identity-provider.ts";

const LIFETIME_MS = 10 * 60 * 1000;
const PATH = "/auth/sso";

/** A pending sign-in at the identity provider. */
export type Transaction = {
  secrets: TransactionSecrets;
  returnTo: string;
  /** The ID of the signed-in user who links the identity to their account. */
  linkTo?: string;
  /** When it expires: epoch milliseconds. */
  until: number;
};

/** Pending sign-ins, each in its own signed cookie, so concurrent ones don't interfere. */
export type Transactions = {
  keep(ctx: Context, transaction: Omit<Transaction, "until">): void;
  /** Returns and deletes the pending sign-in of a `state`, if this browser started it and it hasn't expired. */
  take(ctx: Context, state: unknown): Transaction | undefined;
};

export function createTransactions(base: string): Transactions {
  const options = { ...cookieOptions({ base }), path: PATH };
  const prefix = options.secure ? "__Secure-sso-" : "sso-";
  // The name identifies the sign-in without containing its state.
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
      const isValid = transaction.secrets.state === state && transaction.until > Date.now();
      return isValid ? transaction : undefined;
    },
  };
}
