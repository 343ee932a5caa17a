import type { Membership } from "../../../adapters/organizations.ts";
import { type Html, html } from "../html.ts";
import { document } from "../page.ts";
import { csrfField } from "./controls.ts";

/** What every page of the dashboard shows around its content. */
export type Frame = {
  username: string;
  /** For the forms of the page; absent when there is no session to protect. */
  csrf: string | undefined;
  /** The organizations that the person may switch to. */
  organizations: Membership[];
  /** The one that the page is about. */
  organization?: Membership | undefined;
  section?: Section | undefined;
  /** What was done, said once. */
  notice?: string | undefined;
  /** What was refused, and why. */
  error?: string | undefined;
};

/** The parts of an organization's dashboard: the last word of the address → the name. */
const SECTIONS = {
  overview: "Overview",
  links: "Links",
  webhooks: "Webhooks",
  client: "API access",
  apps: "Apps",
  members: "Members",
  plan: "Plan",
  audit: "Audit",
} as const;

export type Section = keyof typeof SECTIONS;
const MANAGERS_ONLY: readonly Section[] = ["webhooks", "client", "audit"];

type Content = {
  title: string;
  /** A sentence below the title. */
  intro?: Html | string;
  /** Buttons beside the title. */
  actions?: Html;
};

/** A whole page of the dashboard: header, navigation, and what it is about. */
export function dashboardPage(frame: Frame, { title, intro, actions }: Content, body: Html): string {
  const { organization } = frame;
  return document(
    organization ? `${title} · ${organization.name}` : title,
    html`<body class="dashboard">
<a class="skip" href="#content">Skip to the content</a>
${header(frame)}
<div class="columns${organization ? "" : " alone"}">
${organization ? navigation(organization, frame.section) : html``}
<main id="content" tabindex="-1">
${messages(frame)}
<div class="title">
<div><h1>${title}</h1>${intro ? html`<p class="intro">${intro}</p>` : html``}</div>
${actions ? html`<div class="actions">${actions}</div>` : html``}
</div>
${body}
</main>
</div>
</body>`,
    html`
<link rel="stylesheet" href="/assets/dashboard.css">
<script src="/assets/app.js" defer></script>`,
  );
}

/** The address of a part of an organization's dashboard. */
export function sectionPath(organizationId: string, section: Section): string {
  const base = `/dashboard/organizations/${organizationId}`;
  return section === "overview" ? base : `${base}/${section}`;
}

/** Whether a role runs the organization: its client, plan and members. */
export function isManager({ role }: Pick<Membership, "role">): boolean {
  return role !== "member";
}

function header({ username, csrf, organizations, organization }: Frame): Html {
  return html`<header class="top">
<a class="brand" href="/dashboard">linkgate</a>
${organizations.length > 0 ? switcher(organizations, organization) : html``}
<details class="menu account">
<summary><span class="visually-hidden">Account: </span><span class="name">${username}</span><span class="initial" aria-hidden="true">${username.slice(0, 1).toUpperCase()}</span></summary>
<div class="sheet">
<a href="/dashboard/account">Your account</a>
<a href="/docs">API documentation</a>
<form method="post" action="/auth/logout">${csrfField(csrf)}<button type="submit" class="plain">Sign out</button></form>
</div>
</details>
</header>`;
}

function switcher(organizations: Membership[], current: Membership | undefined): Html {
  return html`<details class="menu">
<summary><span class="visually-hidden">Organization: </span><span class="name">${current?.name ?? "Organizations"}</span></summary>
<div class="sheet">
${organizations.map(
  ({ id, name }) =>
    html`<a href="${sectionPath(id, "overview")}"${id === current?.id ? html` aria-current="true"` : html``}>${name}</a>`,
)}
<a class="apart" href="/dashboard/organizations/new">New organization</a>
</div>
</details>`;
}

function navigation(organization: Membership, current: Section | undefined): Html {
  const sections = (Object.keys(SECTIONS) as Section[]).filter(
    (section) => isManager(organization) || !MANAGERS_ONLY.includes(section),
  );
  return html`<nav class="sections" aria-label="${organization.name}"><ul>
${sections.map(
  (section) =>
    html`<li><a href="${sectionPath(organization.id, section)}"${
      section === current ? html` aria-current="page"` : html``
    }>${SECTIONS[section]}</a></li>`,
)}
</ul></nav>`;
}

function messages({ notice, error }: Frame): Html {
  return html`${notice ? html`<p class="notice" role="status">${notice}</p>` : html``}${
    error ? html`<p class="alert" role="alert" id="error">${error}</p>` : html``
  }`;
}
