import type { Context } from "koa";
import { errors, type Interaction, type Provider } from "oidc-provider";
import { identityOf } from "../clients/app-identity.ts";
import { organizationOf } from "../clients/client-metadata.ts";
import { seeOther } from "../http/redirects.ts";
import type { Input } from "../http/request-body.ts";

/** One prompt of the authorization endpoint: its page, and what its form does. */
export type Step = {
  show(ctx: Context, interaction: Interaction): Promise<void>;
  submit(ctx: Context, interaction: Interaction, body: Input): Promise<void>;
};

/** Redirects to the next step unless `check` throws. */
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

export function stepPath({ uid }: Interaction, step: string): string {
  return `/interaction/${uid}/${step}`;
}

export function accountIdOf({ session }: Interaction): string {
  return session?.accountId as string;
}

/** The name may be the one that the metadata document of a client may use. */
export async function clientNameOf(provider: Provider, { params }: Interaction): Promise<string> {
  const client = await provider.Client.find(params.client_id as string);
  if (!client) throw new errors.InvalidClient("client not found");
  return organizationOf(client)?.name ?? identityOf(client.clientId)?.name ?? client.clientId;
}
