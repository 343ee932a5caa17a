import type { Interaction } from "oidc-provider";
import type { SignedIn } from "../auth/sessions.ts";
import type { AccountChoice } from "../provider/interaction-policy.ts";
import { hidden } from "../ui/fields.ts";
import { html } from "../ui/html.ts";
import { page } from "../ui/page.ts";
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

type AccountChoicePage = {
  action: string;
  csrf: string;
  /** The client's organization, or the host of its metadata document. */
  app: string;
  /** The user who is signed in. */
  username: string;
};

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

/** Renders the choice of the account that an app gets access to. */
function accountChoicePage({ action, csrf, app, username }: AccountChoicePage): string {
  return page(
    "Choose an account",
    html`<h1>Choose an account</h1>
<p><strong><bdi>${app}</bdi></strong> is requesting access. You are signed in as <strong><bdi>${username}</bdi></strong>.</p>
<form method="post" action="${action}">
${hidden("csrf", csrf)}
<div class="choices">
<button type="submit" name="account" value="current">Continue as <bdi>${username}</bdi></button>
<button type="submit" name="account" value="other" class="quiet">Use another account</button>
</div>
</form>`,
  );
}
