import type { Context } from "koa";
import { errors, type Interaction, type Provider } from "oidc-provider";
import type { AuthOptions } from "../auth/auth-options.ts";
import { type ClientIdentity, describeProfile, identityOf } from "../clients/app-identity.ts";
import { organizationOf } from "../clients/client-metadata.ts";
import type { Csrf } from "../http/csrf.ts";
import { seeOther } from "../http/redirects.ts";
import type { Input } from "../http/request-body.ts";
import { hidden } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";

/** One prompt of the authorization endpoint: its page, and what its form does. */
export type Step = {
  show(ctx: Context, interaction: Interaction): Promise<void>;
  submit(ctx: Context, interaction: Interaction, body: Input): Promise<void>;
};

/** Redirects to the next step. */
export async function finishStep(
  provider: Provider,
  ctx: Context,
  result: Parameters<Provider["interactionFinished"]>[2],
): Promise<void> {
  // Not `interactionFinished`: it writes the response itself, without our headers.
  seeOther(ctx, await provider.interactionResult(ctx.req, ctx.res, result));
}

/** Returns the address of the page, or of the form of a step. */
export function interactionPath({ uid }: Interaction, step?: string): string {
  return `/interaction/${uid}${step ? `/${step}` : ""}`;
}

/** Renders what each form of an interaction sends along. */
export function hiddenFields(interaction: Interaction, csrf: Csrf): Html {
  return html`${hidden("csrf", csrf.token(interaction.uid))}${restartField(interaction)}`;
}

// Half of what a form may have.
const RESTART_MAX = 8192;

/**
 * Renders what starts the authorization again once the interaction has expired. A pushed request is not repeated: its
 * parameters don't belong in a URL (RFC 9126 §1).
 */
function restartField({ params, parJti, deviceCode }: Interaction & { parJti?: string }): Html {
  if (parJti || deviceCode) return html``;
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(params))
    for (const value of [values].flat()) if (value !== undefined) query.append(name, String(value));
  const request = `/oauth/authorize?${query}`;
  return encodeURIComponent(request).length <= RESTART_MAX ? hidden("restart", request) : html``;
}

export function accountIdOf({ session }: Interaction): string {
  return session?.accountId as string;
}

/** An app as the pages of an authorization show it. */
export type RequestingApp = {
  name: string;
  homepage: string | null;
  /** The organization whose client it is. */
  organization?: { id: string; name: string };
  /** Who vouches for the name of any other app. */
  identity?: ClientIdentity | undefined;
};

export async function requestingAppOf(
  { provider, storage }: Pick<AuthOptions, "provider" | "storage">,
  { params }: Interaction,
): Promise<RequestingApp> {
  const client = await provider.Client.find(params.client_id as string);
  if (!client) throw new errors.InvalidClient("client not found");
  const { clientId } = client;
  const organization = organizationOf(client);
  const profile = organization && (await storage.clients.findProfile(clientId));
  if (!profile) {
    const identity = identityOf(clientId);
    return { name: identity?.name ?? clientId, homepage: null, identity };
  }
  const { id } = organization;
  const { name } = describeProfile(profile);
  return { name, homepage: profile.homepage, organization: { id, name: profile.organizationName } };
}
