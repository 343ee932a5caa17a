import type { Membership } from "../../../adapters/organizations/store.ts";
import { CSRF_FIELD, field, initial, linkButton, named } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

export function noOrganizations(): Html {
  return html`<div class="panel"><h2>Create your first organization</h2>
<p class="soft">Links, members and API access belong to an organization. If you received an invitation link, open it instead.</p>
${namingForm()}</div>`;
}

/** Renders the list of organizations for a user with several who hasn't opened one yet. */
export function organizationChoice(memberships: Membership[]): Html {
  return html`<ul class="tiles">${memberships.map((membership) => {
    const { id, name, plan, role } = membership;
    const link = html`<a href="${sectionPath(id, "overview")}">${name}</a>`;
    return html`<li class="panel"><h2>${named(initial(membership.name), link)}</h2>
<p class="soft">${capitalized(plan)} plan · ${capitalized(role)}</p></li>`;
  })}</ul>
<p>${linkButton("/dashboard/organizations/new", "New organization", "quiet")}</p>`;
}

type Naming = { name?: string | undefined; error?: string | undefined };

export function newOrganizationForm(naming: Naming): Html {
  return html`<div class="panel">${namingForm(naming)}</div>`;
}

function namingForm({ name, error }: Naming = {}): Html {
  return html`<form method="post" action="/dashboard/organizations" class="stack">${CSRF_FIELD}
${field({ name: "name", label: "Name", value: name, hint: "You can change it later.", error, attributes: html`required maxlength="100" autocomplete="organization"` })}
<button type="submit">Create organization</button>
</form>`;
}

export function capitalized(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
