import type { ConsentOption } from "../consent.ts";
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
  /** The organizations to choose from, each with what the user's role there allows of `scopes`. */
  options: ConsentOption[];
  /** Why there are none. */
  refusal?: keyof typeof REFUSALS;
  error?: string;
};

const REFUSALS = {
  plan: "You aren't a member of an organization on the Growth or Premium plan, so you can't approve this request.",
  role: "Your role in your organizations doesn't allow what this app asks for. Ask an owner or an admin.",
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
  const { action, csrf, app, redirectHost, isLocal, username, scopes, options, error } = consent;
  const mayAllow = options.length > 0;
  const offered = mayAllow
    ? scopes.filter((scope) => options.some((one) => one.scopes.includes(scope)))
    : scopes;
  return page(
    "Allow access",
    html`<h1>Allow access?</h1>
<p>An app of <strong>${app}</strong> would like to act for you, <strong>${username}</strong>. It would be able to:</p>
<ul class="scopes">${offered.map((scope) => html`<li>${describe(scope)}</li>`)}</ul>
<p>You will be sent to <strong>${redirectHost}</strong>. The access ends 90 days from now, or when you take it back.</p>
${alert(isLocal ? "This app runs on this computer. Go on only if you have just started it yourself." : undefined)}
${alert(error)}
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
${mayAllow ? choice(options, scopes) : alert(consent.refusal && REFUSALS[consent.refusal])}
<div class="buttons">
${mayAllow ? html`<button type="submit" name="decision" value="allow">Allow</button>` : html``}
<button type="submit" name="decision" value="cancel" class="quiet">Cancel</button>
</div>
</form>`,
  );
}

function describe(scope: string): string {
  return WORDS[scope] ?? scope;
}

function choice(options: ConsentOption[], requested: string[]): Html {
  const [only] = options;
  if (options.length === 1 && only) {
    return html`<p>For the organization <strong>${only.name}</strong>.</p>
${limits(only, requested)}
<input type="hidden" name="organization_id" value="${only.id}">`;
  }
  return html`<fieldset><legend>For which organization?</legend>
${options.map(
  (option, index) =>
    html`<label class="option"><input type="radio" name="organization_id" value="${option.id}"${
      index === 0 ? " checked" : ""
    }> ${option.name}</label>${limits(option, requested)}`,
)}</fieldset>`;
}

/** What was requested and the role doesn't allow. */
function limits({ name, role, scopes }: ConsentOption, requested: string[]): Html {
  const missing = requested.filter((scope) => !scopes.includes(scope)).map(describe);
  if (missing.length === 0) return html``;
  return html`<p class="hint">Your role in ${name} is ${role}, so the app won’t be able to:
${missing.map((text) => text.charAt(0).toLowerCase() + text.slice(1)).join("; ")}.</p>`;
}
