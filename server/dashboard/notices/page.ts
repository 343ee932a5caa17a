import type { Notice } from "../../../adapters/accounts/notices.ts";
import { describeNotice } from "../../mail/notices.ts";
import { CSRF_FIELD, formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";

export const NOTICES_PATH = "/dashboard/notices";

/** Renders the page of all notices: new ones first, then those dismissed in the last 90 days. */
export function noticesPage(notices: Notice[]): Html {
  const open = notices.filter(({ dismissedAt }) => dismissedAt === null);
  const dismissed = notices.filter(({ dismissedAt }) => dismissedAt !== null);
  return html`${open.length > 0 ? openNotices(open) : html`<div class="empty"><p>You have no new security notices.</p></div>`}
${
  dismissed.length > 0 &&
  html`<section><h2>Dismissed</h2><ul class="notices">${dismissed.map((notice) => html`<li>${summary(notice)}</li>`)}</ul></section>`
}`;
}

function openNotices(notices: Notice[]): Html {
  return html`${notices.map((notice) => openNotice(notice))}
${
  notices.length > 1 &&
  html`<form method="post" action="${NOTICES_PATH}/dismiss">${CSRF_FIELD}<button type="submit" class="quiet">Dismiss all</button></form>`
}`;
}

function openNotice(notice: Notice): Html {
  const { title, advice } = describeNotice(notice);
  return html`<section class="panel"><h2>${title}</h2>
<p class="soft">${circumstances(notice)}</p>
<details><summary>This wasn’t me</summary>
<p>${advice}</p>
<p>${linkButton("/dashboard/account", "Secure your account")}</p>
</details>
<p>${formButton({ action: `${NOTICES_PATH}/${notice.id}/dismiss`, text: "Dismiss", about: title })}</p>
</section>`;
}

function summary(notice: Notice): Html {
  return html`${describeNotice(notice).title}<br><span class="soft">${circumstances(notice)}</span>`;
}

function circumstances({ createdAt, data }: Notice): Html {
  return html`${time(createdAt)}${data.address && html` from ${data.address}`}`;
}

/** Renders the line above every dashboard page while there are notices that the user hasn't dismissed. */
export function noticesBanner([latest, ...others]: Notice[]): Html {
  if (!latest) return html``;
  const more = others.length > 0 ? html` and ${others.length} more` : html``;
  return html`<p class="alert"><strong>Security notice:</strong> ${describeNotice(latest).title} (${time(latest.createdAt)})${more}. <a href="${NOTICES_PATH}">Review</a></p>`;
}
