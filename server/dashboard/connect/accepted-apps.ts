import type { Membership } from "../../../adapters/organizations/store.ts";
import { KNOWN_CLIENT_NAMES } from "../../clients/known-clients.ts";
import { badge } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import type { Acceptance, Refusal } from "./acceptance.ts";

/** Renders which kinds of apps can connect, and which setting decides it. */
export function acceptedApps({ id, name }: Membership, accepted: Acceptance, requiresDpop: boolean): Html {
  const reasons: Record<Refusal, Html> = {
    documents_disabled: turnedOffBy("CIMD"),
    registration_disabled: turnedOffBy("DYNAMIC_REGISTRATION"),
    not_allowed: html`Not allowed by ${name}, see <a href="${sectionPath(id, "apps")}">Apps</a>.`,
  };
  const fact = (title: string, about: string, refusal: Refusal | undefined) =>
    html`<dt>${title}</dt><dd>${refusal ? badge("not accepted") : badge("accepted", "good")}
<span class="soft">${about}</span>${refusal ? html`<p class="hint">${reasons[refusal]}</p>` : html``}</dd>`;
  return html`<section class="panel"><h2>Which apps can connect</h2>
<dl class="facts">
${fact("Known AI clients", KNOWN_CLIENT_NAMES, accepted.knownDocument)}
${fact("Other apps", "identified by a metadata document", accepted.otherDocument)}
${fact("Registered apps", "Cursor, Gemini CLI and other apps on your computer that register themselves", accepted.registration)}
</dl>${requiresDpop ? html`<p class="alert">${name} requires DPoP: an app has to bind its tokens to a key as well.</p>` : html``}</section>`;
}

function turnedOffBy(setting: string): Html {
  return html`Turned off on this server, by its setting <code>${setting}</code>.`;
}
