import type { Context } from "koa";
import type { Interaction } from "oidc-provider";
import type { AuthOptions } from "../auth/auth-options.ts";
import { signInPage } from "../auth/login-page.ts";
import type { SignedIn } from "../auth/sessions.ts";
import type { SignInProof } from "../auth/sign-in-proof.ts";
import { INCORRECT_CREDENTIALS } from "../auth/verify-password.ts";
import { textFieldOf } from "../http/request-body.ts";
import type { AccountChoice } from "../provider/interaction-policy.ts";
import { hidden } from "../ui/controls.ts";
import { html } from "../ui/html.ts";
import { finishStep, requestingAppOf, restartField, type Step, stepPath } from "./interaction.ts";

type Login = { accountId: string; ts?: number; amr?: string[] };
type Failure = { username: string; error: string };

/** Skips the sign-in if the user has signed in elsewhere since the interaction began. */
export function loginStep(options: AuthOptions): Step {
  const { provider, csrf, signIn, sessions, ssoButton, passkeyButton, completeSignIn } = options;

  async function showForm(ctx: Context, interaction: Interaction, failure?: Failure): Promise<void> {
    const app = await requestingAppOf(options, interaction);
    await allowOtherAccounts(interaction);
    ctx.body = signInPage({
      action: stepPath(interaction, "sign-in"),
      fields: html`${hidden("csrf", csrf.token(interaction.uid))}${restartField(interaction)}`,
      app,
      // A user with a session is here to sign in again, which the identity provider must require, too.
      external: await ssoButton(`/interaction/${interaction.uid}`, {
        again: interaction.session !== undefined,
      }),
      passkey: await passkeyButton(ctx, `/interaction/${interaction.uid}`),
      ...(failure ?? { username: textFieldOf(interaction.params.login_hint) }),
    });
  }

  async function complete(ctx: Context, interaction: Interaction, proof: SignInProof) {
    const { accountId, amr } = proof;
    const isComplete = await completeSignIn(ctx, proof, `/interaction/${interaction.uid}`, () =>
      finishStep(provider, ctx, { login: { accountId, amr } }),
    );
    return isComplete ? undefined : INCORRECT_CREDENTIALS;
  }

  return {
    async show(ctx, interaction) {
      const session = await sessions.current(ctx);
      if (!session || !isAwaitedSession(session, interaction)) return showForm(ctx, interaction);
      await finishStep(provider, ctx, { login: loginOf(session) });
    },

    async submit(ctx, interaction, body) {
      const username = textFieldOf(body.username);
      const result = await signIn(ctx, username, textFieldOf(body.password));
      const failure = "error" in result ? result : await complete(ctx, interaction, result);
      if (!failure) return;
      ctx.status = failure.status;
      return showForm(ctx, interaction, { username, error: failure.error });
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

function loginOf({ accountId, loginTs: ts, amr }: SignedIn): Login {
  return { accountId, ts, ...(amr && { amr }) };
}
