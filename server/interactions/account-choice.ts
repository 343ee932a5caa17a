import type { Context } from "koa";
import type { Interaction } from "oidc-provider";
import type { Sessions, SignedIn } from "./people/sessions.ts";

/** The result of the page on which a user chooses an account. With `other`, the policy asks for a sign-in. */
export type AccountChoice = { other: boolean };

/** Reads the button that was pressed; anything unknown asks for a sign-in. */
export function accountChoiceOf(body: Record<string, unknown>): AccountChoice {
  return { other: body.account !== "current" };
}

/**
 * Allows a user other than the one of the session to sign in. The library binds an interaction to a session, and
 * refuses it when that session ends; the cookie of the interaction still binds it to the browser.
 */
export async function allowOtherAccounts(interaction: Interaction): Promise<void> {
  const { session } = interaction;
  if (!session?.uid) return;
  interaction.session = { ...session, uid: "" };
  await interaction.persist();
}

/** Returns whether a session is the sign-in that an interaction waits for: a new one, or that of another account. */
export function isAwaited(
  { loginTs, accountId }: SignedIn,
  { session, iat, lastSubmission }: Interaction,
): boolean {
  if (!session) return true;
  const choice = lastSubmission?.select_account as AccountChoice | undefined;
  return loginTs > iat || (choice?.other === true && accountId !== session.accountId);
}

/**
 * Ends the session of another account before a user signs in. The library would show a page of its own for that, with
 * a form that needs JavaScript or another click.
 */
export async function endOtherSession(ctx: Context, sessions: Sessions, accountId: string): Promise<void> {
  const session = await sessions.current(ctx);
  if (session && session.accountId !== accountId) await sessions.end(ctx);
}
