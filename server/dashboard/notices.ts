import type { Notice } from "../../adapters/accounts/notices.ts";
import { describeNotice } from "../mail/notices.ts";
import { dismissNotice, dismissNotices, listNotices } from "../operations/notices.ts";
import { formButton, linkButton, time } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { signedInUserOf } from "./access.ts";
import { addOperation, addReading } from "./operation-routes.ts";
import { showPage } from "./responses.ts";
import type { RouteModule } from "./route.ts";

const PATH = "/dashboard/notices";

export const noticeRoutes: RouteModule = (router, options) => {
  const { notices, organizations } = options.storage;
  const to = () => PATH;

  addReading(router, options, listNotices, async (ctx) => {
    const { id } = signedInUserOf(ctx);
    const listed = await notices.list(id);
    ctx.state.memberships = await organizations.listByUser(id);
    ctx.state.notices = []; // the page itself shows them
    const intro = "Security activity, last 90 days";
    showPage(ctx, { title: "Security notices", intro, body: noticesPage(listed) });
  });
  addOperation(router, options, dismissNotices, { to });
  addOperation(router, options, dismissNotice, { to });
};

function noticesPage(notices: Notice[]): Html {
  const open = notices.filter(({ dismissedAt }) => dismissedAt === null);
  const dismissed = notices.filter(({ dismissedAt }) => dismissedAt !== null);
  return html`${open.length > 0 ? openNotices(open) : html`<div class="empty"><p>You have no new security notices.</p></div>`}
${
  dismissed.length > 0 &&
  html`<section><h2>Dismissed</h2><ul class="notices">${dismissed.map((notice) => html`<li>${describeNotice(notice).title}<br><span class="soft">${circumstances(notice)}</span></li>`)}</ul></section>`
}`;
}

function openNotices(notices: Notice[]): Html {
  return html`${notices.map((notice) => openNotice(notice))}
${notices.length > 1 && formButton({ action: `${PATH}/dismiss`, text: "Dismiss all" })}`;
}

function openNotice(notice: Notice): Html {
  const { title, advice, isFact } = describeNotice(notice);
  return html`<section class="panel"><h2>${title}</h2>
<p class="soft">${circumstances(notice)}</p>
${
  isFact
    ? html`<p>${advice}</p>`
    : html`<details><summary>This wasn’t me</summary>
<p>${advice}</p>
<p>${linkButton("/dashboard/account", "Secure your account")}</p>
</details>`
}
<p>${formButton({ action: `${PATH}/${notice.id}/dismiss`, text: "Dismiss", about: title })}</p>
</section>`;
}

function circumstances({ createdAt, data }: Notice): Html {
  return html`${time(createdAt)}${data.address && html` from ${data.address}`}`;
}
