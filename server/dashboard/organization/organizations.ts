import { createOrganization, listOrganizations } from "../../operations/organizations.ts";
import { CSRF_FIELD, field, initial, linkButton, named } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { capitalized } from "../../ui/text.ts";
import { signedInUserOf } from "../access.ts";
import { formFieldsOf, splitFieldErrors } from "../forms.ts";
import { addOperationPage, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { LAST_VIEWED_COOKIE } from "./overview.ts";

const NEW = "/dashboard/organizations/new";

/** The organizations of the user, and new ones. */
export const organizationRoutes: RouteModule = (router, options) => {
  const { organizations } = options.storage;

  addReading(router, options, listOrganizations, async (ctx) => {
    const memberships = await organizations.listByUser(signedInUserOf(ctx).id);
    const lastViewed = memberships.find(({ id }) => id === ctx.cookies.get(LAST_VIEWED_COOKIE));
    const home = memberships.length === 1 ? memberships[0] : lastViewed;
    if (home) return void ctx.redirect(sectionPath(home.id, "overview"));
    if (memberships.length === 0) return showPage(ctx, { title: "Welcome", body: firstOrganization() });
    ctx.state.memberships = memberships;
    const tiles = memberships.map(({ id, name, plan, role }) => {
      const link = html`<a href="${sectionPath(id, "overview")}">${name}</a>`;
      return html`<li class="panel"><h2>${named(initial(name), link)}</h2>
<p class="soft">${capitalized(plan)} plan · ${capitalized(role)}</p></li>`;
    });
    const body = html`<ul class="tiles">${tiles}</ul>
<p>${linkButton(NEW, "New organization", "quiet")}</p>`;
    showPage(ctx, { title: "Your organizations", body });
  });

  addOperationPage(router, options, createOrganization, {
    path: NEW,
    to: (_, change) => sectionPath(change.organization.id, "overview"),
    async render(ctx, problem) {
      ctx.state.memberships = await organizations.listByUser(signedInUserOf(ctx).id);
      const { errors, ...error } = splitFieldErrors(problem);
      const name = problem && String((await formFieldsOf(ctx)).name ?? "");
      const body = html`<div class="panel">${namingForm(name, errors.name)}</div>`;
      return { title: "New organization", ...error, body };
    },
  });
};

function firstOrganization(): Html {
  return html`<div class="panel"><h2>Create your first organization</h2>
<p class="soft">Links, members and API access belong to an organization. If you received an invitation link, open it instead.</p>
${namingForm()}</div>`;
}

function namingForm(name?: string, error?: string): Html {
  return html`<form method="post" action="/dashboard/organizations" class="stack">${CSRF_FIELD}
${field({ name: "name", label: "Name", value: name, hint: "You can change it later.", error, attributes: html`required maxlength="100" autocomplete="organization"` })}
<button type="submit">Create organization</button>
</form>`;
}
