import type { Context } from "koa";
import type { Interaction } from "oidc-provider";
import { signInPage } from "../auth/login-page.ts";
import type { SignedIn } from "../auth/sessions.ts";
import type { SignInProof } from "../auth/sign-in-proof.ts";
import { INCORRECT_CREDENTIALS } from "../auth/verify-password.ts";
import { identityOf } from "../clients/client-identity.ts";
import { allowOtherAccounts, isAwaitedSession } from "./account-choice.ts";
import {
  clientNameOf,
  currentInteraction,
  finishStep,
  type InteractionOptions,
  readForm,
  type Step,
  stepPath,
  textOf,
} from "./interaction.ts";

type Login = { accountId: string; ts?: number; amr?: string[] };
type Failure = { username: string; error: string };

/** Creates the sign-in step. It is skipped if the user has signed in elsewhere since the interaction began. */
export function loginStep(options: InteractionOptions): Step {
  const { provider, csrf, verifyPassword, sessions, ssoButton, passkeyButton, completeSignIn } = options;

  async function showForm(ctx: Context, interaction: Interaction, failure?: Failure): Promise<void> {
    const app = await clientNameOf(provider, interaction);
    await allowOtherAccounts(interaction);
    ctx.body = signInPage({
      action: stepPath(interaction, "sign-in"),
      csrf: csrf.token(interaction.uid),
      app,
      identity: identityOf(textOf(interaction.params.client_id)),
      // A user with a session is here to sign in again, which the identity provider must require, too.
      external: await ssoButton(`/interaction/${interaction.uid}`, {
        again: interaction.session !== undefined,
      }),
      passkey: await passkeyButton(ctx, `/interaction/${interaction.uid}`),
      ...(failure ?? { username: textOf(interaction.params.login_hint) }),
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

    async submit(ctx) {
      const interaction = await currentInteraction(provider, ctx, "login");
      const body = readForm(ctx, csrf, interaction);
      const username = textOf(body.username);
      const result = await verifyPassword(ctx, username, textOf(body.password));
      const failure = "error" in result ? result : await complete(ctx, interaction, result);
      if (!failure) return;
      ctx.status = failure.status;
      return showForm(ctx, interaction, { username, error: failure.error });
    },
  };
}

function loginOf({ accountId, loginTs: ts, amr }: SignedIn): Login {
  return { accountId, ts, ...(amr && { amr }) };
}
