import type { ClientIdentity } from "../clients/client-identity.ts";
import { type Html, html } from "../ui/html.ts";
import { alert, page } from "../ui/page.ts";
import type { ConsentOption, ExcludedOrganization } from "./consent.ts";

export type Consent = {
  action: string;
  csrf: string;
  /** The name of the app. */
  app: string;
  /** Who vouches for that name; undefined for the client of an organization. */
  identity?: ClientIdentity | undefined;
  /** The host of the redirect URI, or its scheme; `isLocal`: on this computer, where any program can use it. */
  target: { name: string; isLocal: boolean };
  username: string;
  scopes: string[];
  /** The organizations to choose from, each with the scopes that the user's role there allows. */
  options: ConsentOption[];
  /** The user's organizations that don't let the user authorize this app. */
  excluded: ExcludedOrganization[];
  /** Returns the page on which an owner or admin of an organization can approve the app. */
  approvalUrl: (organizationId: string) => string;
  /** Why there are no options. */
  refusal?: keyof typeof REFUSALS | undefined;
  error?: string | undefined;
};

// Nothing proves which program on a computer has started a request (RFC 8252 §8.6).
const KNOWN_APP = {
  remote: "Verified: this app is on linkgate’s list of known apps.",
  local:
    "This app is on linkgate’s list of known apps, but other programs on your computer can use its name.",
};

const REFUSALS = {
  suspended:
    "Your organization is suspended, so you can’t approve this request. Its owners can contact the operator of this service.",
  plan: "You aren’t a member of an organization on the Growth or Premium plan, so you can’t approve this request.",
  role: "Your role doesn’t allow the access that this app requests. Ask an owner or admin of your organization.",
};

const SCOPE_DESCRIPTIONS: Record<string, string> = {
  "links:read": "View links and their clicks",
  "links:write": "Create, edit and delete links",
  "webhooks:read": "View webhooks",
  "webhooks:write": "Create, edit and delete webhooks",
  openid: "View your user ID and username",
  offline_access: "Keep this access while you’re not using the app",
};

/** Renders what an app will be able to do, for which organization, and for how long. */
export function consentPage(consent: Consent): string {
  const { action, csrf, app, identity, target, username, scopes, error } = consent;
  const { options, refusal } = consent;
  const canAllow = options.length > 0;
  const offered = canAllow
    ? scopes.filter((scope) => options.some((option) => option.scopes.includes(scope)))
    : scopes;
  return page(
    canAllow ? "Allow access" : "You can’t allow access",
    html`<h1>${canAllow ? "Allow access?" : "You can’t allow access"}</h1>
<p>You’ll be redirected to <strong>${target.name}</strong>.</p>
<p><strong><bdi>${app}</bdi></strong> is requesting access as <strong><bdi>${username}</bdi></strong>. It ${canAllow ? "will be able" : "wants"} to:</p>
<ul class="scopes">${offered.map((scope) => html`<li>${describe(scope)}</li>`)}</ul>
${identity ? identityNote(identity, target.isLocal) : html``}
${canAllow ? html`<p>Access expires in 90 days; you can revoke it at any time.</p>` : html``}
${alert(target.isLocal ? "This app runs on your computer. Continue only if you just started it." : undefined)}
${alert(error)}
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
${canAllow ? organizationChoice(options, scopes) : alert(refusal && REFUSALS[refusal])}
${exclusions(consent)}
<div class="buttons">
${canAllow ? html`<button type="submit" name="decision" value="allow">Allow</button>` : html``}
<button type="submit" name="decision" value="cancel" class="quiet">Cancel</button>
</div>
</form>`,
  );
}

/** Says who publishes the identity of an app, and whether the app is a known one. */
function identityNote({ publisher, isKnown }: ClientIdentity, isLocal: boolean): Html {
  if (!publisher) {
    return html`<p><strong>Not verified</strong>: this app chose its name itself. Continue only if you trust it.</p>`;
  }
  return html`<p>Identity published by <strong>${publisher}</strong>. ${
    isKnown
      ? KNOWN_APP[isLocal ? "local" : "remote"]
      : html`<strong>Not verified</strong>: this app isn’t on linkgate’s list of known apps. Continue only if you trust this site.`
  }</p>`;
}

/** Says for each organization that the user can't choose why, and who can change that. */
function exclusions({ excluded, approvalUrl }: Consent): Html {
  return html`${excluded.map(({ id, name, reason }) => {
    const organization = html`<bdi>${name}</bdi>`;
    if (reason === "kind") {
      return html`<p class="alert">${organization} doesn’t allow this app. Ask an owner or admin to allow it under Apps.</p>`;
    }
    if (reason === "second_factor") {
      return html`<p class="alert">${organization} requires a second factor. Set one up on your account page, sign in with it, then start again from the app.</p>`;
    }
    if (reason === "members") {
      return html`<p class="alert">${organization} doesn’t let its members authorize apps. Ask an owner or admin of ${organization}.</p>`;
    }
    return html`<p class="alert">Ask an owner or admin of ${organization} to approve this app. Send them this link: <code class="long">${approvalUrl(id)}</code></p>`;
  })}`;
}

function describe(scope: string): string {
  return SCOPE_DESCRIPTIONS[scope] ?? scope;
}

function organizationChoice(options: ConsentOption[], requested: string[]): Html {
  const [only] = options;
  if (options.length === 1 && only) {
    return html`<p>Organization: <strong><bdi>${only.name}</bdi></strong></p>
${roleLimits(only, requested)}
<input type="hidden" name="organization_id" value="${only.id}">`;
  }
  return html`<fieldset><legend>Select an organization</legend>
${options.map(
  (option, index) =>
    html`<label class="option"><input type="radio" name="organization_id" value="${option.id}"${
      index === 0 ? " checked" : ""
    }> <bdi>${option.name}</bdi></label>${roleLimits(option, requested)}`,
)}</fieldset>`;
}

/** Lists requested scopes that the user's role doesn't allow. */
function roleLimits({ name, role, scopes }: ConsentOption, requested: string[]): Html {
  const missing = requested.filter((scope) => !scopes.includes(scope)).map(describe);
  if (missing.length === 0) return html``;
  return html`<p class="hint">Your role in <bdi>${name}</bdi> is ${role}, so the app won’t be able to:
${missing.map((text) => text.charAt(0).toLowerCase() + text.slice(1)).join("; ")}.</p>`;
}
