import type { Membership } from "../../adapters/organizations/store.ts";
import { CSRF_FIELD, time } from "./controls.ts";
import { type Html, html } from "./html.ts";
import { document } from "./page.ts";

export type DashboardFrame = {
  username: string;
  organizations: Membership[];
  organization?: Membership | undefined;
  section?: Section | undefined;
  /** Whom members of a suspended organization contact: a `mailto:` or `https:` URI. */
  supportContact?: string | undefined;
  notice?: string | undefined;
  error?: string | undefined;
  banner: Html;
};

/** The sections of an organization's dashboard: path segment → name. */
const SECTIONS = {
  overview: "Overview",
  links: "Links",
  webhooks: "Webhooks",
  connect: "Connect",
  client: "API access",
  apps: "Apps",
  members: "Members",
  plan: "Plan",
  audit: "Audit log",
} as const;

export type Section = keyof typeof SECTIONS;
const MANAGERS_ONLY: readonly Section[] = ["webhooks", "client", "audit"];

export type Content = {
  title: string;
  heading?: string;
  intro?: Html | string;
  actions?: Html | undefined;
  body: Html;
};

export function dashboardPage(frame: DashboardFrame, content: Content): string {
  const { organization, error } = frame;
  const { title, heading = title, intro, actions, body } = content;
  const name = error ? `Error: ${title}` : title;
  return document(
    organization ? `${name} · ${organization.name}` : name,
    html`<body class="dashboard">
<a class="skip" href="#content">Skip to content</a>
${header(frame)}
<div class="columns${organization ? "" : " single"}">
${organization && navigation(organization, frame.section)}
<main id="content" tabindex="-1">
${suspensionAlert(frame)}
${messages(frame)}
<div class="title">
<div><h1>${heading}</h1>${intro && html`<p class="intro">${intro}</p>`}</div>
${actions && html`<div class="actions">${actions}</div>`}
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

export function sectionPath(organizationId: string, section: Section): string {
  const base = `/dashboard/organizations/${organizationId}`;
  return section === "overview" ? base : `${base}/${section}`;
}

/** Returns whether a role may manage the organization's client, plan and members. */
export function isManager({ role }: Pick<Membership, "role">): boolean {
  return role !== "member";
}

function header({ username, organizations, organization }: DashboardFrame): Html {
  return html`<header class="top">
<a class="brand" href="/dashboard">linkgate</a>
${organizations.length > 0 && switcher(organizations, organization)}
<details class="menu account">
<summary><span class="visually-hidden">Account: </span><span class="name"><bdi>${username}</bdi></span><span class="initial" aria-hidden="true">${username.slice(0, 1).toUpperCase()}</span></summary>
<div class="sheet">
<a href="/dashboard/account">Your account</a>
<a href="/dashboard/notices">Security notices</a>
<a href="/docs">API documentation</a>
<form method="post" action="/auth/logout">${CSRF_FIELD}<button type="submit" class="plain">Sign out</button></form>
</div>
</details>
</header>`;
}

function switcher(organizations: Membership[], current: Membership | undefined): Html {
  return html`<details class="menu">
<summary><span class="visually-hidden">Organization: </span><span class="name"><bdi>${current?.name ?? "Organizations"}</bdi></span></summary>
<div class="sheet">
${organizations.map(
  ({ id, name }) =>
    html`<a href="${sectionPath(id, "overview")}"${id === current?.id && html` aria-current="true"`}><bdi>${name}</bdi></a>`,
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
      section === current && html` aria-current="page"`
    }>${SECTIONS[section]}</a></li>`,
)}
</ul></nav>`;
}

function suspensionAlert({ organization, supportContact }: DashboardFrame): Html {
  const suspension = organization?.suspension;
  if (!suspension) return html``;
  const contact = supportContact
    ? html`<a href="${supportContact}">Contact support</a>.`
    : html`Contact the operator of this service.`;
  const reason = suspension.reason ? html` Reason: ${suspension.reason}.` : html``;
  return html`<p class="alert bad"><strong>This organization is suspended</strong> since ${time(suspension.at)}. Its links, apps, tokens and webhooks don’t work, and you can’t change anything here.${reason} ${contact}</p>`;
}

function messages({ notice, error, banner }: DashboardFrame): Html {
  return html`${banner}${notice && html`<p class="notice" role="status">${notice}</p>`}${
    error && html`<p class="alert" role="alert" id="error">${error}</p>`
  }`;
}
