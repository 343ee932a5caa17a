import type { ClientView } from "../../adapters/oauth/clients.ts";
import type { Membership } from "../../adapters/organizations/store.ts";
import type { TrustRule } from "../../adapters/organizations/trust-rules.ts";
import { isPaid } from "../../resources/plans.ts";
import { badge, initial, linkButton, named, time } from "../ui/controls.ts";
import { sectionPath } from "../ui/dashboard-layout.ts";
import { type Html, html } from "../ui/html.ts";
import { pathWith, table } from "../ui/table.ts";

type Acting = {
  title: string;
  name: Html;
  lastUsedAt: number | null;
  activity?: string;
  page: string;
  pageName: string;
};

/** Renders what acts for an organization besides the apps that its members authorized: its client and workloads. */
export function ownClientList(membership: Membership, client: ClientView, rules: TrustRule[]): Html {
  const { id, name } = membership;
  const rows = [clientRow(membership, client), ...rules.map((rule) => ruleRow(id, rule))];
  const columns = {
    Name: ({ name }: Acting) => name,
    "Last used": ({ lastUsedAt, activity }: Acting) =>
      html`${time(lastUsedAt)}${activity && html`<br><a href="${activity}">View activity<span class="visually-hidden"> of the client</span></a>`}`,
  };
  return html`<section class="group"><h2>Also acting for <bdi>${name}</bdi></h2>
${table("Own client and workloads", columns, rows, ({ title, page, pageName }) => linkButton(page, pageName, "quiet", `of ${title}`))}
</section>`;
}

function clientRow(membership: Membership, { clientId, secrets, keys, disabled }: ClientView): Acting {
  const { id, name, plan } = membership;
  const uses = [...secrets, ...keys].flatMap(({ lastUsedAt }) => lastUsedAt ?? []);
  const state = disabled ? badge("disabled", "bad") : isPaid(plan) ? html`` : badge("Free plan", "warn");
  return {
    title: name,
    name: named(
      initial(membership.name),
      html`<strong><bdi>${name}</bdi></strong> ${state}<br><span class="soft">the organization’s client</span>`,
    ),
    lastUsedAt: uses.length > 0 ? Math.max(...uses) : null,
    activity: pathWith(sectionPath(id, "audit"), { client_id: clientId }),
    page: sectionPath(id, "client"),
    pageName: "API access",
  };
}

function ruleRow(organizationId: string, { name, issuer, lastUsedAt }: TrustRule): Acting {
  return {
    title: name,
    name: html`<strong><bdi>${name}</bdi></strong><br><span class="soft">workload of ${new URL(issuer).host}</span>`,
    lastUsedAt,
    page: `${sectionPath(organizationId, "overview")}/workload-identity`,
    pageName: "Trust rules",
  };
}
