import type { Context } from "koa";
import { errors, type Interaction } from "oidc-provider";
import { identityOf } from "../clients/client-identity.ts";
import { redirectTargetOf } from "../clients/redirect-uris.ts";
import { approveConsent, denyConsent, findConsentOptions } from "./consent.ts";
import { consentPage } from "./consent-page.ts";
import {
  accountIdOf,
  clientNameOf,
  currentInteraction,
  type InteractionOptions,
  readForm,
  type Step,
  seeOther,
  stepPath,
  textOf,
} from "./interaction.ts";

/** Creates the step on which a user allows or denies the request, for one of their organizations. */
export function consentStep(options: InteractionOptions): Step {
  const { provider, storage, clientPolicy, csrf, base, sessions } = options;
  const findOptions = async (ctx: Context, interaction: Interaction) =>
    findConsentOptions(storage, clientPolicy, {
      userId: accountIdOf(interaction),
      clientId: clientIdOf(interaction),
      scopes: requestedScopes(interaction),
      amr: (await sessions.current(ctx))?.amr,
    });

  async function showPage(ctx: Context, interaction: Interaction, error?: string): Promise<void> {
    const account = await storage.accounts.find(accountIdOf(interaction));
    ctx.body = consentPage({
      action: stepPath(interaction, "consent"),
      csrf: csrf.token(interaction.uid),
      app: await clientNameOf(provider, interaction),
      identity: identityOf(clientIdOf(interaction)),
      username: account?.username ?? "",
      scopes: requestedScopes(interaction),
      ...(await findOptions(ctx, interaction)),
      approvalUrl: (id) => `${base}${approvalPath(id, clientIdOf(interaction))}`,
      error,
      target: redirectTargetOf(textOf(interaction.params.redirect_uri)),
    });
  }

  function showError(ctx: Context, interaction: Interaction, error: string): Promise<void> {
    ctx.status = 422;
    return showPage(ctx, interaction, error);
  }

  return {
    show: (ctx, interaction) => showPage(ctx, interaction),

    async submit(ctx) {
      const interaction = await currentInteraction(provider, ctx, "consent");
      const body = readForm(ctx, csrf, interaction);
      if (body.decision !== "allow") {
        await denyConsent(provider, ctx);
        return seeOther(ctx, interaction.returnTo);
      }
      const { options } = await findOptions(ctx, interaction);
      const option = options.find(({ id }) => id === body.organization_id);
      if (!option) return showError(ctx, interaction, "Select one of your organizations.");
      const approval = { accountId: accountIdOf(interaction), option, address: ctx.ip };
      try {
        await approveConsent(provider, storage, interaction, approval);
      } catch (error) {
        if (!(error instanceof errors.AccessDenied)) throw error;
        return showError(ctx, interaction, `You are no longer a member of ${option.name}.`);
      }
      seeOther(ctx, interaction.returnTo);
    },
  };
}

function clientIdOf({ params }: Interaction): string {
  return textOf(params.client_id);
}

function requestedScopes({ params }: Interaction): string[] {
  return textOf(params.scope).split(" ").filter(Boolean);
}

/** Returns the path of the page on which an owner or admin of an organization approves an app for its members. */
function approvalPath(organizationId: string, clientId: string): string {
  return `/dashboard/organizations/${organizationId}/apps/approve?${new URLSearchParams({ client_id: clientId })}`;
}
