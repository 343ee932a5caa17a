import type { Context } from "koa";
import type { AccountStore } from "../adapters/accounts.ts";
import type { Limits } from "./limits.ts";
import { Busy, type Passwords } from "./passwords.ts";

/** Checks a user name and a password. The refusal is the same sentence whatever was wrong. */
export type SignIn = (ctx: Context, username: string, password: string) => Promise<Proof | Refusal>;

/** Who has shown the password. */
export type Proof = {
  accountId: string;
  /**
   * Whether it is still the password: it may have been changed while it was checked. To be asked when whatever follows
   * from it is stored, which a change ends; what is stored later has to be ended by whoever stored it.
   */
  holds(): Promise<boolean>;
};

/** What is said to who has not; an HTTP status. */
export type Refusal = { error: string; status: number };

/** The one answer to every wrong sign-in. */
export const REFUSED: Refusal = { error: "The username or the password is wrong.", status: 400 };

/** Makes the password check; unknown, disabled and external-only people cost the same work as a wrong password. */
export function createSignIn(accounts: AccountStore, passwords: Passwords, limits: Limits): SignIn {
  return async (ctx, username, password) => {
    const wait = await limits.signIn.attempt(ctx.ip, username);
    if (wait) {
      ctx.set("Retry-After", String(wait));
      return { error: `Too many attempts. Try again in ${wait} seconds.`, status: 429 };
    }
    try {
      const account = canBeName(username) ? await accounts.findByUsername(username) : undefined;
      const hash = account && !account.disabled ? account.passwordHash : null;
      if (!account || !(await passwords.verify(hash, password))) {
        if (!account) await passwords.verify(null, password);
        return REFUSED;
      }
      await limits.signIn.succeeded(ctx.ip, username);
      return { accountId: account.id, holds: () => accounts.hasHash(account.id, hash as string) };
    } catch (error) {
      if (!(error instanceof Busy)) throw error;
      ctx.set("Retry-After", "2");
      return { error: "Many people are signing in right now. Try again in a moment.", status: 503 };
    }
  };
}

/** Control characters are in no name, and PostgreSQL refuses to look for a NUL. */
function canBeName(username: string): boolean {
  return !/\p{Cc}/u.test(username);
}
