import type { Context } from "koa";
import { errors, type Interaction, type Provider } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import type { ClientPolicy } from "../../adapters/oauth/client-policy.ts";
import type { CompleteSignIn } from "../auth/complete-sign-in.ts";
import type { ShowPasskeyButton } from "../auth/passkeys/sign-in.ts";
import type { Sessions } from "../auth/sessions.ts";
import type { ShowSsoButton } from "../auth/sso/button.ts";
import type { VerifyPassword } from "../auth/verify-password.ts";
import { identityOf } from "../clients/client-identity.ts";
import { organizationOf } from "../clients/client-metadata.ts";
import type { Csrf } from "../http/csrf.ts";

export type InteractionOptions = {
  provider: Provider;
  storage: Pick<
    Storage,
    "accounts" | "appPolicies" | "consentedGrants" | "organizations" | "secondFactorRequirement"
  >;
  clientPolicy: ClientPolicy;
  csrf: Csrf;
  verifyPassword: VerifyPassword;
  sessions: Sessions;
  ssoButton: ShowSsoButton;
  passkeyButton: ShowPasskeyButton;
  completeSignIn: CompleteSignIn;
  /** The URL of this service. */
  base: string;
};

/** One prompt of the authorization endpoint: its page, and what its form does. */
export type Step = {
  show(ctx: Context, interaction: Interaction): Promise<void>;
  submit(ctx: Context): Promise<void>;
};

/**
 * Returns the interaction of this browser.
 * @param prompt the step that the request is for
 * @throws SessionNotFound if the URL names another interaction, or if the step is already done
 */
export async function currentInteraction(
  provider: Provider,
  ctx: Context,
  prompt?: string,
): Promise<Interaction> {
  ctx.set("Cache-Control", "no-store");
  const interaction = await provider.interactionDetails(ctx.req, ctx.res);
  if (interaction.uid !== ctx.params.uid) {
    throw new errors.SessionNotFound("the URL names another interaction");
  }
  if (prompt && interaction.prompt.name !== prompt) {
    throw new errors.SessionNotFound("this step is already done");
  }
  return interaction;
}

/** @throws InvalidRequest without a valid CSRF token */
export function readForm(ctx: Context, csrf: Csrf, interaction: Interaction): Record<string, unknown> {
  const body = (ctx.request.body ?? {}) as Record<string, unknown>;
  if (!csrf.isValid(body.csrf, interaction.uid)) {
    throw new errors.InvalidRequest("the form has no valid CSRF token");
  }
  return body;
}

/** Stores the result of a step, then redirects to the next one unless `check` throws. */
export async function finishStep(
  provider: Provider,
  ctx: Context,
  result: Parameters<Provider["interactionFinished"]>[2],
  check = async () => {},
): Promise<void> {
  // Not `interactionFinished`: it writes the response itself, without our headers.
  const target = await provider.interactionResult(ctx.req, ctx.res, result);
  await check();
  seeOther(ctx, target);
}

export function seeOther(ctx: Context, target: string): void {
  ctx.status = 303; // RFC 9700 §4.12: never 307
  ctx.redirect(target);
}

/** Returns the URL that the form of a step is sent to. */
export function stepPath({ uid }: Interaction, step: string): string {
  return `/interaction/${uid}/${step}`;
}

export function accountIdOf({ session }: Interaction): string {
  return session?.accountId as string;
}

/** Returns the name of the client's organization, or the one that its metadata document may use. */
export async function clientNameOf(provider: Provider, { params }: Interaction): Promise<string> {
  const client = await provider.Client.find(params.client_id as string);
  if (!client) throw new errors.InvalidClient("client not found");
  return organizationOf(client)?.name ?? identityOf(client.clientId)?.name ?? client.clientId;
}

/** Returns a form field or parameter as text, empty if it is missing or repeated. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
