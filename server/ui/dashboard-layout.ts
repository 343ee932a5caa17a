import type { Membership } from "../../adapters/organizations/store.ts";
import { assetAddress } from "./asset-files.ts";
import { CSRF_FIELD, icon, initial, time } from "./controls.ts";
import { type Html, html } from "./html.ts";
import { alert, BRAND, document } from "./page.ts";

const HEAD = html`
<link rel="stylesheet" href="${assetAddress("dashboard.css")}">
<script src="${assetAddress("app.js")}" defer></script>
<script src="${assetAddress("shortcuts.js")}" defer></script>`;

/** What pages have around their content. */
type Frame = {
  username: string;
  organizations: Membership[];
  organization?: Membership | undefined;
  /** Whom members of a suspended organization contact: a `mailto:` or `https:` URI. */
  supportContact?: string | undefined;
  notice?: string | undefined;
  /** How many security notices the user hasn't dismissed. */
  notices: number;
  failingWebhooks: number;
  banner?: Html | undefined;
};

/** The sections of an organization's dashboard: path segment → name and icon. */
const SECTIONS = {
  overview: ["Overview", "house"],
  links: ["Links", "link-2"],
  analytics: ["Analytics", "chart-column"],
  domains: ["Domains", "globe"],
  connect: ["Connect", "plug"],
  client: ["API access", "key-round"],
  webhooks: ["Webhooks", "webhook"],
  apps: ["Apps", "blocks"],
  members: ["Members", "users"],
  plan: ["Plan", "credit-card"],
  audit: ["Audit log", "scroll-text"],
  settings: ["Settings", "settings"],
} as const;

/** The groups of the navigation: heading → sections. */
const PARTS = {
  "": ["overview", "links", "analytics", "domains"],
  Developers: ["connect", "client", "webhooks", "apps"],
  Organization: ["members", "plan", "audit", "settings"],
} satisfies Record<string, Section[]>;

export type Section = keyof typeof SECTIONS;
const MANAGERS_ONLY: readonly Section[] = ["domains", "webhooks", "client", "audit"];

export type PageContent = {
  title: string;
  heading?: string;
  /** Stands before the heading. */
  tile?: Html;
  intro?: Html | string | undefined;
  actions?: Html | undefined;
  body: Html;
  section?: Section | undefined;
  error?: string | undefined;
  /** Whether the body has the error, at its form. */
  showsError?: boolean | undefined;
  /** Whether the page shows a secret. */
  isSecret?: boolean;
  /** The form that undoes what the notice is about. */
  undo?: Html | undefined;
};

export function dashboardPage(frame: Frame, content: PageContent): string {
  const { organization } = frame;
  const { title, heading = title, tile, intro, actions, body, section, error } = content;
  const name = error ? `Error: ${title}` : title;
  return document(
    organization ? `${name} · ${organization.name}` : name,
    html`<body class="dashboard">
<a class="visually-hidden" href="#content">Skip to content</a>
${header(frame)}
<div class="columns${organization ? "" : " single"}">
${organization && navigation(organization, section, frame.failingWebhooks)}
<main id="content" tabindex="-1">
${suspensionAlert(frame)}
${messages(frame, content)}
<div class="title">${tile}
<div><h1>${heading}</h1>${intro && html`<p class="intro">${intro}</p>`}</div>
${actions && html`<div class="actions">${actions}</div>`}
</div>
${body}
</main>
</div>
</body>`,
    { extraHead: HEAD },
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

function header({ username, organizations, organization, notices }: Frame): Html {
  return html`<header class="top">
<a class="brand" href="/dashboard">${BRAND}</a>
${organizations.length > 0 && switcher(organizations, organization)}
<div class="end">
<button type="button" class="tool" data-box>${icon("search")}<span class="name">Go to</span> <kbd>Ctrl K</kbd></button>
<a class="tool" href="/docs">${icon("book-open")}<span class="name">Docs</span></a>
<a class="tool" href="/dashboard/notices">${icon("bell")}<span class="visually-hidden">Security notices</span>${
    notices > 0 && html`<span class="count">${notices}<span class="visually-hidden"> new</span></span>`
  }</a>
<details class="menu account">
<summary>${initial(username)}<span class="visually-hidden">Account: </span><span class="name"><bdi>${username}</bdi></span>${icon("chevron-down")}</summary>
<div class="sheet">
<a href="/dashboard/account">${icon("circle-user")}Your account</a>
<a href="/dashboard/notices">${icon("bell")}Security notices</a>
<a href="/docs">${icon("book-open")}Documentation</a>
<form method="post" action="/auth/logout">${CSRF_FIELD}<button type="submit">${icon("log-out")}Sign out</button></form>
</div>
</details>
</div>
</header>`;
}

function switcher(organizations: Membership[], current: Membership | undefined): Html {
  const name = current?.name ?? "Organizations";
  return html`<details class="menu">
<summary>${initial(name)}<span class="visually-hidden">Organization: </span><span class="name"><bdi>${name}</bdi></span>${icon("chevrons-up-down")}</summary>
<div class="sheet">
${organizations.map(
  (one) =>
    html`<a href="${sectionPath(one.id, "overview")}"${one.id === current?.id && html` aria-current="true"`}>${initial(one.name)}<bdi>${one.name}</bdi></a>`,
)}
<a class="apart" href="/dashboard/organizations/new">${icon("plus")}New organization</a>
</div>
</details>`;
}

function navigation(organization: Membership, current: Section | undefined, failingWebhooks: number): Html {
  const mayOpen = (section: Section) => isManager(organization) || !MANAGERS_ONLY.includes(section);
  return html`<nav class="sections" aria-label="${organization.name}"><ul>
${Object.entries(PARTS).map(
  ([part, sections]: [string, Section[]]) =>
    html`${part && html`<li class="part">${part}</li>`}${sections.filter(mayOpen).map(
      (section) =>
        html`<li><a href="${sectionPath(organization.id, section)}"${
          section === current && html` aria-current="page"`
        }>${icon(SECTIONS[section][1])}${SECTIONS[section][0]}${
          section === "webhooks" &&
          failingWebhooks > 0 &&
          html` <span class="count">${failingWebhooks}<span class="visually-hidden"> failing</span></span>`
        }</a></li>
`,
    )}`,
)}
</ul></nav>`;
}

function suspensionAlert({ organization, supportContact }: Frame): Html {
  const suspension = organization?.suspension;
  if (!suspension) return html``;
  const contact = supportContact
    ? html`<a href="${supportContact}">Contact support</a>.`
    : html`Contact the operator of this service.`;
  const reason = suspension.reason ? html` Reason: ${suspension.reason}.` : html``;
  return html`<p class="alert bad"><strong>This organization has been suspended</strong> since ${time(suspension.at)}. Its links, apps, tokens and webhooks don’t work, and you can’t change anything here.${reason} ${contact}</p>`;
}

function messages({ notice, banner }: Frame, { undo, error, showsError }: PageContent): Html {
  return html`${banner}${notice && html`<div class="notice" role="status" data-toast><span>${notice}</span>${undo}</div>`}${!showsError && alert(error, "error")}`;
}
