import { csrfField, linkButton, time } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { webhookChoice } from "./created-webhooks.ts";

type RevocationForm = {
  app: { id: string; name: string; username: string; scopes: string[]; grantedAt: number };
  organizationName: string;
  /** Which authorization it is, if there are several alike. */
  repeat: string | undefined;
  /** Whether the user who revokes the app has authorized it. */
  isOwn: boolean;
  /** How many other authorizations of this app the organization has, if the user may see them. */
  others?: number;
  /** The hosts of the webhooks that the app created; absent if the user can't manage webhooks. */
  webhookHosts: string[] | undefined;
  /** The path of the list of apps. */
  path: string;
  csrf: string | undefined;
};

/** Renders the page that says what revoking an app's access does, and asks for confirmation. */
export function appRevocationForm(form: RevocationForm): Html {
  const { app, organizationName, repeat, isOwn, others = 0, webhookHosts, path, csrf } = form;
  const who = isOwn ? "You" : html`<bdi>${app.username}</bdi>`;
  return html`<form method="post" action="${path}/${app.id}/delete" class="panel danger stack">${csrfField(csrf)}
<p><strong><bdi>${app.name}</bdi></strong> loses its access to <strong><bdi>${organizationName}</bdi></strong> immediately. ${who} authorized it on ${time(app.grantedAt)}${repeat ? ` (${repeat})` : ""}.</p>
<ul>
<li>The access and refresh tokens of this authorization stop working${permissions(app.scopes)}.</li>
<li>${webhookHosts ? "Links" : "Links and webhooks"} that the app created stay.</li>
${others > 0 ? html`<li>${others === 1 ? "Another authorization" : `${others} other authorizations`} of this app in the organization ${others === 1 ? "isn’t" : "aren’t"} affected.</li>` : html``}
</ul>
${webhookChoice(webhookHosts ?? [], "this app", isOwn ? "you" : html`<bdi>${app.username}</bdi>`)}
<div class="actions"><button type="submit" class="danger">Revoke access</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

function permissions(scopes: string[]): Html {
  if (scopes.length === 0) return html``;
  return html`: ${scopes.map((scope, index) => html`${index > 0 ? ", " : ""}<code>${scope}</code>`)}`;
}
