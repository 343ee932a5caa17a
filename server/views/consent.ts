import { type Html, html } from "./html.ts";
import { alert, page } from "./page.ts";

export type Consent = {
  action: string;
  csrf: string;
  /** Who offers the app: its organization, or the host of its metadata document. */
  app: string;
  /** Where the answer goes: the host of the redirect URI, or its scheme. */
  redirectHost: string;
  /** The redirect stays on this computer, where any program could have sent the person. */
  isLocal: boolean;
  username: string;
  scopes: string[];
  /** The organizations that the person may choose from. */
  organizations: { id: string; name: string }[];
  error?: string;
};

const WORDS: Record<string, string> = {
  "links:read": "See the links of the organization, with their clicks",
  "links:write": "Create, change and delete links",
  "webhooks:read": "See the webhooks of the organization",
  "webhooks:write": "Create, change and delete webhooks",
  openid: "Know who you are: your user id and user name",
  offline_access: "Keep this access while you are away",
};

/** What an app may do, for which organization, and for how long. */
export function consentPage(consent: Consent): string {
  const { action, csrf, app, redirectHost, isLocal, username, scopes, organizations, error } = consent;
  const mayAllow = organizations.length > 0;
  return page(
    "Allow access",
    html`<h1>Allow access?</h1>
<p>An app of <strong>${app}</strong> would like to act for you, <strong>${username}</strong>. It would be able to:</p>
<ul class="scopes">${scopes.map((scope) => html`<li>${WORDS[scope] ?? scope}</li>`)}</ul>
<p>You will be sent to <strong>${redirectHost}</strong>. The access ends 90 days from now, or when you take it back.</p>
${alert(isLocal ? "This app runs on this computer. Go on only if you have just started it yourself." : undefined)}
${alert(error)}
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
${mayAllow ? choice(organizations) : alert("You cannot allow this: it needs an organization on the Growth or Premium plan, and you belong to none.")}
<div class="buttons">
${mayAllow ? html`<button type="submit" name="decision" value="allow">Allow</button>` : html``}
<button type="submit" name="decision" value="cancel" class="quiet">Cancel</button>
</div>
</form>`,
  );
}

function choice(organizations: Consent["organizations"]): Html {
  const [only] = organizations;
  if (organizations.length === 1 && only) {
    return html`<p>For the organization <strong>${only.name}</strong>.</p>
<input type="hidden" name="organization_id" value="${only.id}">`;
  }
  return html`<fieldset><legend>For which organization?</legend>
${organizations.map(
  ({ id, name }, index) =>
    html`<label class="option"><input type="radio" name="organization_id" value="${id}"${
      index === 0 ? " checked" : ""
    }> ${name}</label>`,
)}</fieldset>`;
}
