import type { Context } from "koa";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import { PasswordQueueFull, type Passwords } from "../credentials/passwords.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";

/** Verifies a username and password. Every failure has the same message, so it doesn't reveal which one was wrong. */
export type VerifyPassword = (
  ctx: Context,
  username: string,
  password: string,
) => Promise<PasswordProof | LoginError>;

/** A user who entered the right password. */
export type PasswordProof = {
  accountId: string;
  /**
   * Resolves to whether the password is still the same. It may have been changed while it was being verified, and a
   * change ends the sessions and tokens that exist then: ask after storing a new one, and delete that one if false.
   */
  isCurrent(): Promise<boolean>;
};

/** A failed login: the message to show and the HTTP status. */
export type LoginError = { error: string; status: number };

/** The error of a wrong username or password. */
export const INCORRECT_CREDENTIALS: LoginError = {
  error: "Incorrect username or password.",
  status: 400,
};

/**
 * Creates the password check. Unknown, disabled and SSO-only users take the same time as a wrong password, so that
 * usernames can't be enumerated.
 */
export function createVerifyPassword(
  accounts: AccountStore,
  passwords: Passwords,
  authenticationLimits: AuthenticationLimits,
): VerifyPassword {
  return async (ctx, username, password) => {
    const wait = await authenticationLimits.signIn.attempt(ctx.ip, username);
    if (wait) {
      ctx.set("Retry-After", String(wait));
      return { error: `Too many attempts. Try again in ${wait} seconds.`, status: 429 };
    }
    try {
      const account = canBeUsername(username) ? await accounts.findByUsername(username) : undefined;
      const hash = account && !account.disabled ? account.passwordHash : null;
      if (!account || !(await passwords.verify(hash, password))) {
        if (!account) await passwords.verify(null, password);
        return INCORRECT_CREDENTIALS;
      }
      await authenticationLimits.signIn.succeeded(ctx.ip, username);
      return { accountId: account.id, isCurrent: () => accounts.hasHash(account.id, hash as string) };
    } catch (error) {
      if (!(error instanceof PasswordQueueFull)) throw error;
      ctx.set("Retry-After", "2");
      return { error: "Too many sign-ins are in progress. Try again in a moment.", status: 503 };
    }
  };
}

/** No username contains control characters, and PostgreSQL rejects a query for a NUL. */
function canBeUsername(username: string): boolean {
  return !/\p{Cc}/u.test(username);
}
