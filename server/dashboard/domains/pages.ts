import { toView } from "../../../resources/domains/schema.ts";
import type { Domain } from "../../../resources/domains/types.ts";
import { invalidField } from "../../../resources/http/validate.ts";
import type { LinkCount } from "../../../resources/links/list.ts";
import { isPaid, limitsOf, type Plan } from "../../../resources/plans.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import * as ui from "../../ui/controls.ts";
import type { PageContent } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, paidPlanState, table } from "../../ui/table.ts";
import { pluralize } from "../../ui/text.ts";
import type { FieldErrors } from "../forms.ts";
import { toUrl, urlField } from "../links/form.ts";

const EMPTY =
  "Add a domain of yours, such as go.example.com, and verify it with a DNS record. Your short links can then start with it.";

type Content = Pick<PageContent, "body" | "actions">;

/** Returns the list of domains, or how to start. */
export function domainsPage(domains: Domain[], plan: Plan, path: string, planPath: string): Content {
  const add = ui.linkButton(`${path}/new`, "Add domain");
  if (domains.length === 0) {
    const limits = `Growth includes ${limitsOf("growth").domains} domains, and Premium ${limitsOf("premium").domains}.`;
    return {
      body: isPaid(plan)
        ? emptyState("No domains yet", EMPTY, add)
        : paidPlanState("Domains require a paid plan", limits, planPath),
    };
  }
  const columns = {
    Domain: ({ id, host, default: isDefault }: Domain) =>
      html`<a href="${path}/${id}">${ui.breakable(host)}</a>${isDefault && html` ${ui.badge("Default")}`}`,
    Status: statusOf,
    Added: ({ createdAt }: Domain) => ui.day(createdAt),
  };
  const list = table("Domains", columns, domains);
  if (!isPaid(plan))
    return {
      body: html`<p class="alert">Your domains keep serving links on the Free plan. <a href="${planPath}">Upgrade</a> to Growth or Premium to add more.</p>${list}`,
    };
  const { domains: limit } = limitsOf(plan);
  const isFull = domains.length >= limit;
  const count = `${domains.length} of ${limit} domains.${isFull ? " Delete one to add another." : ""}`;
  return { body: html`${list}<p class="soft">${count}</p>`, ...(!isFull && { actions: add }) };
}

function statusOf({ verified, lostAt }: Domain): Html {
  if (!verified) return ui.badge("Waiting for DNS record", "warn");
  if (lostAt === null) return ui.badge("Verified", "good");
  return html`${ui.badge("DNS record missing", "bad")} <span class="soft">since ${ui.time(lostAt)}</span>`;
}

const CASES = [
  ["true", "Sale and sale are two links (default)"],
  ["false", "Sale and sale are one link"],
] as const;

/** Renders the form of a new domain, after an error with the submitted values. */
export function newForm(path: string, sent: Input, errors: FieldErrors): Html {
  return ui.panelForm(
    { action: path, submit: "Add domain", cancel: path },
    html`${ui.field({
      name: "host",
      label: "Domain",
      value: textFieldOf(sent.host),
      error: errors.host,
      hint: "A domain or subdomain that you own. Next, you verify it with a DNS record.",
      attributes: html`required maxlength="253" placeholder="go.example.com" autocomplete="off" autocapitalize="none" spellcheck="false"`,
    })}
${ui.select({
  name: "case_sensitive",
  label: "Upper and lower case",
  value: textFieldOf(sent.case_sensitive) || "true",
  options: CASES,
  hint: "You can’t change this later. Choose one link if people type your links, such as from print.",
})}`,
  );
}

const URLS = {
  root_redirect_url: ["Home page", "Visitors of the domain itself go here. Leave empty for a 404 page."],
  not_found_url: ["Unknown links", "Visitors who find no link go here. Leave empty for a 404 page."],
  fallback_url: [
    "Unavailable links",
    "Visitors go here when a link without a fallback URL is archived, expired or used up. Leave empty to use the organization’s fallback URL.",
  ],
} as const;

const APP_LINKS = {
  apple_app_site_association: ["iOS", "JSON, served as /.well-known/apple-app-site-association."],
  assetlinks: ["Android", "JSON, served as /.well-known/assetlinks.json."],
} as const;

/** Converts the fields of the settings to the input of the service. @throws Problem 422 for a document that isn't JSON */
export function toInput(fields: Input): Input {
  const urls = Object.keys(URLS).map((name) => [name, toUrl(fields[name]) || null]);
  const documents = Object.keys(APP_LINKS).map((name) => {
    const text = textFieldOf(fields[name]).trim();
    try {
      return [name, text === "" ? null : JSON.parse(text)];
    } catch {
      throw invalidField(`app_links.${name}`, "must be valid JSON", "invalid_app_links");
    }
  });
  const app_links = Object.fromEntries(documents);
  return { default: fields.default === "true", ...Object.fromEntries(urls), app_links };
}

/** Returns the field of the form that shows an error. */
export function formFieldOf(field: string): string {
  return field.replace("app_links.", "").split(".")[0] ?? "";
}

function valuesOf(domain: Domain): Input {
  const { app_links, ...view } = toView(domain);
  const write = ([name, value]: [string, unknown]) => [name, value && JSON.stringify(value, null, 2)];
  const documents = Object.fromEntries(Object.entries(app_links).map(write));
  return { ...view, ...documents, default: String(domain.default) };
}

type DomainPage = {
  domain: Domain;
  path: string;
  links: string;
  shortHost: string;
  sent: Input | undefined;
  errors: FieldErrors;
  /** Why the domain could not be verified. */
  error: string | undefined;
};

/** Returns whether the DNS record was there when it was last looked up. */
export function isProved({ verified, lostAt }: Domain): boolean {
  return verified && lostAt === null;
}

/** Returns the page of a domain: its status with its DNS record, and its settings. */
export function domainPage(page: DomainPage): Content & { title: string } {
  const { domain, path, links, error } = page;
  const { host, verified, caseSensitive, createdAt } = domain;
  const { dns } = toView(domain);
  const body = html`${isProved(domain) ? html`` : openStep(page)}
<section class="panel"><dl class="facts">
<dt>Status</dt><dd data-fact="status">${statusOf(domain)}</dd>
${Object.entries(dns).map(([name, value]) => html`<dt>DNS record ${name}</dt><dd>${ui.copyable(value, `the ${name} of the DNS record`)}</dd>\n`)}<dt>Upper and lower case</dt><dd>${CASES[caseSensitive ? 0 : 1][1].replace(" (default)", "")}</dd>
<dt>Added</dt><dd>${ui.time(createdAt)}</dd>
</dl>
${isProved(domain) ? html`<p class="soft">Keep the DNS record. It is checked every day.</p>` : ui.formButton({ action: `${path}/verify`, text: "Verify domain", look: "primary", error })}
</section>
${settingsForm(page)}
<p>${ui.linkButton(`${path}/delete`, "Delete domain", "danger")}</p>`;
  return { title: host, actions: verified ? ui.linkButton(links, "Show links", "quiet") : undefined, body };
}

/** Says what to do about the DNS record. */
function openStep({ domain: { host, verified, lostAt }, shortHost }: DomainPage): Html {
  if (verified)
    return html`<p class="alert bad">The DNS record has been missing since ${ui.time(lostAt)}. ${host} keeps serving links, but after 7 days, another organization that proves it gets it. Create the record again, then verify the domain.</p>`;
  const { hostname } = new URL(`http://${shortHost}`);
  return html`<p class="alert">Create the DNS record below with your DNS provider, then verify the domain. A new record can take some minutes to be visible. Also point ${host} to this service, usually with a CNAME record for ${hostname}.</p>`;
}

function settingsForm({ domain, path, sent, errors }: DomainPage): Html {
  const values = sent ?? valuesOf(domain);
  const state = (name: string, [label, hint]: readonly [label: string, hint: string]) => ({
    name,
    label,
    hint,
    value: textFieldOf(values[name]),
    error: errors[name],
  });
  const documents = Object.entries(APP_LINKS).map(([name, texts]) => state(name, texts));
  const isOpen = documents.some(({ value, error }) => value || error);
  return html`<form method="post" action="${path}" class="panel stack">${ui.CSRF_FIELD}${ui.hidden("version", String(domain.version))}
<h2>Settings</h2>
<label class="option"><input type="checkbox" name="default" value="true"${values.default === "true" && html` checked`}><span>Use this domain for new links by default</span></label>
${Object.entries(URLS).map(([name, texts]) => urlField(state(name, texts)))}
<details class="more"${isOpen && html` open`}><summary class="opener">Apps</summary><div class="stack">
<p class="hint">With these documents, iOS and Android open links of the domain in your app.</p>
${documents.map((one) => ui.textArea(one))}
</div></details>
<button type="submit">Save settings</button>
</form>`;
}

/** Renders the form that deletes a domain, and asks what happens to its links. */
export function deletionForm(path: string, { links, isExact }: LinkCount, shortHost: string): Html {
  const choice = ui.select({
    name: "links",
    label: isExact ? `Its ${pluralize(links, "link")}` : "Its links",
    options: [
      ["move", `Move to ${shortHost}, with the same slugs`],
      ["delete", "Delete"],
    ],
    hint: "You can’t undo the deletion of links.",
  });
  return ui.panelForm(
    { action: `${path}/delete`, submit: "Delete domain", cancel: path, danger: "panel" },
    html`<p>The domain stops working immediately, and so do short links that start with it.</p>
${links === 0 && isExact ? html`<p>It has no links.</p>` : choice}`,
  );
}
