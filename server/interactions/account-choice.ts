import type { AuthOptions } from "../auth/auth-options.ts";
import type { AccountChoice } from "../provider/interaction-policy.ts";
import { html } from "../ui/html.ts";
import { page } from "../ui/page.ts";
import {
  accountIdOf,
  finishStep,
  hiddenFields,
  interactionPath,
  requestingAppOf,
  type Step,
} from "./interaction.ts";

export function accountChoiceStep({ provider, storage, csrf }: AuthOptions): Step {
  return {
    async show(ctx, interaction) {
      const { username = "" } = (await storage.accounts.find(accountIdOf(interaction))) ?? {};
      const app = await requestingAppOf({ provider, storage }, interaction);
      ctx.body = page(
        "Choose an account",
        html`<h1>Choose an account</h1>
<p><strong><bdi>${app.name}</bdi></strong> is requesting access. You are signed in as <strong><bdi>${username}</bdi></strong>.</p>
<form method="post" action="${interactionPath(interaction, "account")}">
${hiddenFields(interaction, csrf)}
<div class="stack">
<button type="submit" name="account" value="current">Continue as <bdi>${username}</bdi></button>
<button type="submit" name="account" value="other" class="quiet">Use another account</button>
</div>
</form>`,
      );
    },

    async submit(ctx, _interaction, { account }) {
      // An unknown value means another account.
      const choice: AccountChoice = { other: account !== "current" };
      await finishStep(provider, ctx, { select_account: choice });
    },
  };
}
