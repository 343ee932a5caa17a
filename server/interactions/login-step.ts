import type { Context } from "koa";
import type { Interaction } from "oidc-provider";
import type { AuthOptions } from "../auth/auth-options.ts";
import { redisplayIfRefused } from "../auth/error-handler.ts";
import type { SignedIn } from "../auth/sessions.ts";
import { signInForm } from "../auth/sign-in-form.ts";
import { incorrectCredentials } from "../auth/verify-password.ts";
import { textFieldOf } from "../http/request-body.ts";
import type { AccountChoice } from "../provider/interaction-policy.ts";
import { type Html, html } from "../ui/html.ts";
import { page } from "../ui/page.ts";
import {
  accountIdOf,
  finishStep,
  hiddenFields,
  interactionPath,
  type RequestingApp,
  requestingAppOf,
  type Step,
} from "./interaction.ts";

/** Skips the sign-in if the user has signed in elsewhere since the interaction began. */
export function loginStep(options: AuthOptions): Step {
  const { provider, csrf, signIn, sessions, completeSignIn } = options;

  async function showForm(ctx: Context, interaction: Interaction, username: string, error?: string) {
    const app = await requestingAppOf(options, interaction);
    await allowOtherAccounts(interaction);
    const form = await signInForm(ctx, options, {
      action: interactionPath(interaction, "sign-in"),
      fields: hiddenFields(interaction, csrf),
      returnTo: interactionPath(interaction),
      // A user with a session is here to sign in again, which the identity provider must require, too.
      again: interaction.session !== undefined,
      username,
      error,
    });
    ctx.body = page(
      "Sign in",
      html`<h1>Sign in</h1>
<p>${describeApp(app)} wants to access your account. Sign in to continue.</p>
${form}`,
    );
  }

  return {
    async show(ctx, interaction) {
      const session = await sessions.current(ctx);
      if (!session || !isAwaitedSession(session, interaction))
        return showForm(ctx, interaction, textFieldOf(interaction.params.login_hint));
      const { accountId, loginTs: ts, amr } = session;
      await finishStep(provider, ctx, { login: { accountId, ts, ...(amr && { amr }) } });
    },

    async submit(ctx, interaction, body) {
      const username = textFieldOf(body.username);
      const begin = async () => {
        const proof = await signIn(ctx, username, textFieldOf(body.password));
        const { accountId, amr } = proof;
        const finish = () => finishStep(provider, ctx, { login: { accountId, amr } });
        if (!(await completeSignIn(ctx, proof, interactionPath(interaction), finish)))
          throw incorrectCredentials();
      };
      await redisplayIfRefused(ctx, begin, ({ message }) => showForm(ctx, interaction, username, message));
    },
  };
}

/** The library rejects an interaction when its session ends; its cookie still binds it to the browser. */
async function allowOtherAccounts(interaction: Interaction): Promise<void> {
  const { session } = interaction;
  if (!session?.uid) return;
  interaction.session = { ...session, uid: "" };
  await interaction.persist();
}

/** Accepts a newer sign-in, or one with another account. */
function isAwaitedSession(
  { provedAt = 0, accountId }: SignedIn,
  { session, iat, lastSubmission, params }: Interaction,
): boolean {
  // OpenID Connect Core §3.1.2.1: `max_age` is about the last authentication, so it must be known.
  if (!session) return params.max_age === undefined || provedAt > 0;
  const choice = lastSubmission?.select_account as AccountChoice | undefined;
  return provedAt > iat || (choice?.other === true && accountId !== session.accountId);
}

/** Names the app. A registered client may have taken the name of any company, so the app isn't one "by" it. */
function describeApp({ name, organization, identity }: RequestingApp): Html {
  const app = html`<strong><bdi>${name}</bdi></strong>`;
  if (!organization) return html`${app}${!identity?.isKnown && ", an app that isn’t verified,"}`;
  if (name === organization.name) return html`An app by ${app}`;
  return html`${app}, an app by <strong><bdi>${organization.name}</bdi></strong>,`;
}

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
