import type { Role } from "../../../adapters/organizations/store.ts";
import { csrfField, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { webhookChoice } from "../created-webhooks.ts";

type RemovalForm = {
  member: { username: string; role: Role };
  organizationName: string;
  /** Whether the member leaves. Otherwise, an owner or admin removes the member. */
  isOwn: boolean;
  /** The names of the apps that the member authorized for this organization. */
  apps: string[];
  /** The hosts of the webhooks that the member created; absent if the user can't manage webhooks. */
  webhookHosts: string[] | undefined;
  /** The path of the form, and that of its Cancel button. */
  action: string;
  back: string;
  csrf: string | undefined;
};

/** Renders the page that says what removing a member does, and asks for confirmation. */
export function memberRemovalForm(form: RemovalForm): Html {
  const { member, organizationName, isOwn, apps, webhookHosts, action, back, csrf } = form;
  const name = html`<bdi>${member.username}</bdi>`;
  const organization = html`<strong><bdi>${organizationName}</bdi></strong>`;
  const they = isOwn ? "you" : "they";
  return html`<form method="post" action="${action}" class="panel danger stack">${csrfField(csrf)}
<p>${isOwn ? html`You lose your access to ${organization} immediately, and need` : html`<strong>${name}</strong> loses access to ${organization} immediately, and needs`} a new invitation to return.</p>
<ul>
${lostApps(apps, they)}
${member.role === "member" ? html`` : html`<li>Unused invitation and password reset links that ${they} created stop working.</li>`}
<li>${webhookHosts ? "Links" : "Links and webhooks"} that ${they} created stay.</li>
<li>${isOwn ? "Your account and your" : "Their account and their"} other organizations aren’t affected.</li>
</ul>
${webhookChoice(webhookHosts ?? [], isOwn ? "you" : name)}
<div class="actions"><button type="submit" class="danger">${isOwn ? "Leave organization" : "Remove member"}</button>${linkButton(back, "Cancel", "quiet")}</div>
</form>`;
}

function lostApps(apps: string[], they: string): Html {
  if (apps.length === 0) return html``;
  const names = apps.toSorted().map((app, index) => html`${index > 0 ? ", " : ""}<bdi>${app}</bdi>`);
  return html`<li>${apps.length === 1 ? "The app" : `The ${apps.length} apps`} that ${they} authorized for this organization ${apps.length === 1 ? "loses" : "lose"} access: ${names}.</li>`;
}
