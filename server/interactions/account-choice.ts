import type { Interaction } from "oidc-provider";
import type { SignedIn } from "../auth/sessions.ts";
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
  { provedAt = 0, accountId }: SignedIn,
  { session, iat, lastSubmission, params }: Interaction,
): boolean {
  // OpenID Connect Core §3.1.2.1: `max_age` is about the last authentication, so it must be known.
  if (!session) return params.max_age === undefined || provedAt > 0;
  const choice = lastSubmission?.select_account as AccountChoice | undefined;
  return provedAt > iat || (choice?.other === true && accountId !== session.accountId);
}
