import type { Context } from "koa";
import type { Interaction } from "oidc-provider";
import type { Sessions, SignedIn } from "../auth/sessions.ts";
import type { AccountChoice } from "../provider/interaction-policy.ts";
import { accountChoicePage } from "./account-choice-page.ts";
import {
  accountIdOf,
  clientNameOf,
  currentInteraction,
  finishStep,
  type InteractionOptions,
  readForm,
  type Step,
  stepPath,
} from "./interaction.ts";

/** Creates the step on which a user chooses the current or another account. */
export function accountChoiceStep({ provider, storage, csrf }: InteractionOptions): Step {
  return {
    async show(ctx, interaction) {
      const account = await storage.accounts.find(accountIdOf(interaction));
      ctx.body = accountChoicePage({
        action: stepPath(interaction, "account"),
        csrf: csrf.token(interaction.uid),
        app: await clientNameOf(provider, interaction),
        username: account?.username ?? "",
      });
    },

    async submit(ctx) {
      const interaction = await currentInteraction(provider, ctx, "select_account");
      const choice = readAccountChoice(readForm(ctx, csrf, interaction));
      await finishStep(provider, ctx, { select_account: choice });
    },
  };
}

/** Reads which button was pressed; an unknown value means another account. */
function readAccountChoice(body: Record<string, unknown>): AccountChoice {
  return { other: body.account !== "current" };
}

/**
 * Lets a user other than the one of the current session sign in. The library binds an interaction to a session, and
 * rejects it when that session ends; the interaction's cookie still binds it to the browser.
 */
export async function allowOtherAccounts(interaction: Interaction): Promise<void> {
  const { session } = interaction;
  if (!session?.uid) return;
  interaction.session = { ...session, uid: "" };
  await interaction.persist();
}

/** Returns whether a session satisfies the login prompt: a newer sign-in, or one with another account. */
export function isAwaitedSession(
  { loginTs, accountId }: SignedIn,
  { session, iat, lastSubmission }: Interaction,
): boolean {
  if (!session) return true;
  const choice = lastSubmission?.select_account as AccountChoice | undefined;
  return loginTs > iat || (choice?.other === true && accountId !== session.accountId);
}

/**
 * Ends the session of another account before a user signs in. The library would show its own page first, with a form
 * that needs JavaScript or another click.
 */
export async function endOtherSession(ctx: Context, sessions: Sessions, accountId: string): Promise<void> {
  const session = await sessions.current(ctx);
  if (session && session.accountId !== accountId) await sessions.end(ctx);
}
