import type { Context } from "koa";
import { z } from "zod";
import type { Storage } from "../../adapters/index.ts";
import type { WebhookCreator } from "../../adapters/webhooks/delete.ts";
import { validate } from "../../resources/http/validate.ts";
import { breakable } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { switchFieldsOf } from "./responses.ts";

const choice = z.strictObject({
  delete_webhooks: z.boolean({ error: "must be true or false" }).default(false),
});

// More than any plan allows.
const LIMIT = 100;

/** Returns whether the request asks to delete webhooks as well. @throws Problem 422 */
export async function asksToDeleteWebhooks(ctx: Context): Promise<boolean> {
  return validate(choice, await switchFieldsOf(ctx, "delete_webhooks")).delete_webhooks;
}

/** Returns the host of each webhook that a user or app has created. */
export async function createdWebhookHosts(
  { webhooks }: Pick<Storage, "webhooks">,
  organizationId: string,
  { userId, clientId }: WebhookCreator,
): Promise<string[]> {
  const all = await webhooks.list(organizationId, LIMIT);
  const created = all.filter(
    ({ createdBy, createdVia }) =>
      createdBy === userId && (clientId === undefined || createdVia === clientId),
  );
  return created.map(({ url }) => URL.parse(url)?.hostname ?? url);
}

/**
 * Renders the choice to delete webhooks as well, or nothing if there are none.
 * @param creator who created them, as the subject of a sentence
 * @param user for whom an app created them
 */
export function webhookChoice(hosts: string[], creator: Html | string, user?: Html | string): Html {
  if (hosts.length === 0) return html``;
  const isOne = hosts.length === 1;
  const counts = [...Map.groupBy(hosts.toSorted(), (host) => host)];
  return html`<fieldset><legend>Webhooks</legend>
<p>${creator} created ${isOne ? "1 webhook" : `${hosts.length} webhooks`}${user ? html` for ${user}` : html``}, which ${isOne ? "stays unless you delete it" : "stay unless you delete them"}:</p>
<ul>${counts.map(([host, { length }]) => html`<li>${breakable(host)}${length > 1 ? ` (${length})` : ""}</li>`)}</ul>
<label class="option"><input type="checkbox" name="delete_webhooks" value="true" aria-describedby="delete_webhooks-hint"> ${isOne ? "Also delete this webhook" : `Also delete these ${hosts.length} webhooks`}</label>
<p class="hint" id="delete_webhooks-hint">This also deletes ${isOne ? "its signing secret and delivery log" : "their signing secrets and delivery logs"}. You can’t undo it.</p>
</fieldset>`;
}
