import type { OrganizationSettings } from "../../../adapters/organizations/settings.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import type { ShownApproval } from "../../clients/client-view.ts";
import type { SignedInUser } from "../../http/state.ts";
import type { Settings } from "../../settings/config.ts";
import { CSRF_FIELD, field, linkButton, panelForm, settingPanel } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { appPolicyPanel, enterpriseAuthorizationPanel } from "./app-policy.ts";
import { approvedAppsPanel } from "./approved-apps.ts";
import { fallbackPanel } from "./fallback-url.ts";
import { secondFactorPanel } from "./second-factor.ts";

type SettingsPage = {
  membership: Membership;
  user: Pick<SignedInUser, "secondFactor">;
  settings: Settings;
  own: OrganizationSettings;
  approved: ShownApproval[];
  /** A rejected new name, and why it was rejected. */
  rejected: { name?: string | undefined; error?: string | undefined };
  fallback: Parameters<typeof fallbackPanel>[1];
};

/** Renders one panel per setting, each only for those who may use it. */
export function settingsPage(page: SettingsPage): Html {
  const { membership, user, settings, own, approved } = page;
  const isOwner = membership.role === "owner";
  return html`${isManager(membership) && html`${namePanel(membership, page.rejected)}${fallbackPanel(membership.id, page.fallback)}${secondFactorPanel(membership, user, own.requiresSecondFactor)}`}
${appPolicyPanel(membership, own, settings)}
${own.memberApps === "approved" && approvedAppsPanel(membership, approved)}
${isOwner && settings.IDP_NAME && enterpriseAuthorizationPanel(membership, own.enterpriseAuthorization, settings.IDP_NAME)}
${leavePanel(membership)}
${isOwner && deletionPanel(membership)}`;
}

function namePanel({ id, name }: Membership, rejected: SettingsPage["rejected"]): Html {
  return settingPanel(
    { title: "Name", text: "Shown to your members, and to users when your app requests access." },
    html`<form method="post" action="${sectionPath(id, "overview")}" class="row">${CSRF_FIELD}
${field({ name: "name", label: "Organization name", value: rejected.name ?? name, error: rejected.error, attributes: html`required maxlength="100"` })}
<button type="submit" class="quiet">Rename organization</button>
</form>`,
  );
}

function leavePanel({ id, role }: Membership): Html {
  const text = `You’re ${role === "member" ? "a" : "an"} ${role}. Leaving revokes the apps you authorized for this organization.`;
  return settingPanel(
    { title: "Leave organization", text },
    linkButton(`${sectionPath(id, "members")}/me/delete`, "Leave organization", "quiet"),
  );
}

function deletionPanel({ id }: Membership): Html {
  const text = "Revokes all tokens and deletes the organization’s data. Its short links stop working.";
  return settingPanel(
    { title: "Delete organization", text, isDangerous: true },
    linkButton(`${sectionPath(id, "overview")}/delete`, "Delete organization", "danger"),
  );
}

export function deletionForm({ id, name }: Membership): Html {
  const action = `${sectionPath(id, "overview")}/delete`;
  return panelForm(
    { action, submit: "Delete organization", cancel: sectionPath(id, "settings"), danger: "panel" },
    html`<p>You can’t undo this. Deleting the organization immediately:</p>
<ul>
<li>revokes all of its tokens and the access of its authorized apps</li>
<li>deletes its client, secrets, webhooks and invitations, and removes its members</li>
<li>stops its short links from working; their slugs can’t be used again</li>
</ul>
${field({ name: "name", label: `Type “${name}” to confirm`, attributes: html`required autocomplete="off"` })}`,
  );
}
