import { prose } from "../../docs/prose.ts";
import { badge } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import type { Acceptance, Obstacle } from "./acceptance.ts";
import type { Host } from "./host.ts";
import { HOSTS } from "./hosts.ts";

/** Renders which kinds of apps can connect, and which setting decides it. */
export function acceptedApps(organization: string, accepted: Acceptance): Html {
  const fact = (name: string, about: string, obstacle: Obstacle | undefined) =>
    html`<dt>${name}</dt><dd>${obstacle ? badge("not accepted") : badge("accepted", "good")}
<span class="soft">${about}</span>${obstacle ? html`<p class="hint">${prose(decidedBy(obstacle, organization))}</p>` : html``}</dd>`;
  return html`<section class="panel"><h2>Which apps can connect</h2>
<dl class="facts">
${fact("Known apps", namesOf("document"), accepted.knownDocument)}
${fact("Other apps", "identified by a metadata document", accepted.otherDocument)}
${fact("Registered apps", `${namesOf("registration")} and others that register themselves`, accepted.registration)}
</dl></section>`;
}

function namesOf(identity: Host["identity"]): string {
  return HOSTS.filter((host) => host.identity === identity)
    .map(({ name }) => name)
    .join(", ");
}

function decidedBy(obstacle: Obstacle, organization: string): string {
  if (obstacle === "documents_disallowed") return `Turned off for ${organization}.`;
  const setting = obstacle === "registration_disabled" ? "DYNAMIC_REGISTRATION" : "CIMD";
  return `Turned off on this server, with the setting \`${setting}\`.`;
}
