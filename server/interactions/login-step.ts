import type { Context } from "koa";
import { errors, type Interaction } from "oidc-provider";
import { signInPage } from "../auth/login-page.ts";
import { identityOf } from "../clients/client-identity.ts";
import { allowOtherAccounts, endOtherSession, isAwaitedSession } from "./account-choice.ts";
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

type Failure = { username: string; error: string };

/** Creates the sign-in step. It is skipped if the user has signed in elsewhere since the interaction began. */
export function loginStep({ provider, csrf, verifyPassword, sessions, ssoButton }: InteractionOptions): Step {
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
      ...(failure ?? { username: textOf(interaction.params.login_hint) }),
    });
  }

  return {
    async show(ctx, interaction) {
      const session = await sessions.current(ctx);
      if (!session || !isAwaitedSession(session, interaction)) return showForm(ctx, interaction);
      await finishStep(provider, ctx, { login: { accountId: session.accountId, ts: session.loginTs } });
    },

    async submit(ctx) {
      const interaction = await currentInteraction(provider, ctx, "login");
      const body = readForm(ctx, csrf, interaction);
      const username = textOf(body.username);
      const result = await verifyPassword(ctx, username, textOf(body.password));
      if ("error" in result) {
        ctx.status = result.status;
        return showForm(ctx, interaction, { username, error: result.error });
      }
      await finishStep(provider, ctx, { login: { accountId: result.accountId } }, async () => {
        if (await result.isCurrent()) return endOtherSession(ctx, sessions, result.accountId);
        await interaction.destroy();
        throw new errors.SessionNotFound("the password was changed in the meantime");
      });
    },
  };
}
