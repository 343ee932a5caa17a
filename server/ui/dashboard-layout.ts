import type { Membership } from "../../adapters/organizations/store.ts";
import { csrfField, time } from "./controls.ts";
import { type Html, html } from "./html.ts";
import { document } from "./page.ts";

/** What every dashboard page shows around its content. */
export type DashboardFrame = {
  username: string;
  /** The CSRF token for the page's forms; absent if there is no session to protect. */
  csrf: string | undefined;
  /** The organizations that the user can switch to. */
  organizations: Membership[];
  /** The organization that the page belongs to. */
  organization?: Membership | undefined;
  section?: Section | undefined;
  /** Whom members of a suspended organization contact: a `mailto:` or `https:` URI. */
  supportContact?: string | undefined;
  /** Confirms the change that was just made. */
  notice?: string | undefined;
  /** Why a submitted form was rejected. */
  error?: string | undefined;
  /** Announces security notices. */
  banner?: Html | undefined;
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

type Content = {
  title: string;
  /** The `h1`, if it is not the title. */
  heading?: string;
  /** A sentence below the heading. */
  intro?: Html | string;
  /** Buttons next to the heading. */
  actions?: Html | undefined;
};

/** Renders a dashboard page: header, navigation and content. */
export function dashboardPage(frame: DashboardFrame, content: Content, body: Html): string {
  const { organization, error } = frame;
  const { title, heading = title, intro, actions } = content;
  const name = error ? `Error: ${title}` : title;
  return document(
    organization ? `${name} · ${organization.name}` : name,
    html`<body class="dashboard">
<a class="skip" href="#content">Skip to content</a>
${header(frame)}
<div class="columns${organization ? "" : " single"}">
${organization ? navigation(organization, frame.section) : html``}
<main id="content" tabindex="-1">
${suspensionAlert(frame)}
${messages(frame)}
<div class="title">
<div><h1>${heading}</h1>${intro ? html`<p class="intro">${intro}</p>` : html``}</div>
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

/** Returns the path of a section of an organization's dashboard. */
export function sectionPath(organizationId: string, section: Section): string {
  const base = `/dashboard/organizations/${organizationId}`;
  return section === "overview" ? base : `${base}/${section}`;
}

/** Returns whether a role may manage the organization's client, plan and members. */
export function isManager({ role }: Pick<Membership, "role">): boolean {
  return role !== "member";
}

function header({ username, csrf, organizations, organization }: DashboardFrame): Html {
  return html`<header class="top">
<a class="brand" href="/dashboard">linkgate</a>
${organizations.length > 0 ? switcher(organizations, organization) : html``}
<details class="menu account">
<summary><span class="visually-hidden">Account: </span><span class="name"><bdi>${username}</bdi></span><span class="initial" aria-hidden="true">${username.slice(0, 1).toUpperCase()}</span></summary>
<div class="sheet">
<a href="/dashboard/account">Your account</a>
<a href="/dashboard/notices">Security notices</a>
<a href="/docs">API documentation</a>
<form method="post" action="/auth/logout">${csrfField(csrf)}<button type="submit" class="plain">Sign out</button></form>
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
    html`<a href="${sectionPath(id, "overview")}"${id === current?.id ? html` aria-current="true"` : html``}><bdi>${name}</bdi></a>`,
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
  return html`${banner ?? html``}${notice ? html`<p class="notice" role="status">${notice}</p>` : html``}${
    error ? html`<p class="alert" role="alert" id="error">${error}</p>` : html``
  }`;
}
