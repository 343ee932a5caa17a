import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { isPaid } from "../../../resources/plans.ts";
import { showClient } from "../../clients/client-view.ts";
import { ENDPOINT_LIST } from "../../oauth-endpoints.ts";
import { copyable, linkButton } from "../../ui/controls.ts";
import { html } from "../../ui/html.ts";
import { membershipOf, pathTo } from "../access.ts";
import type { RouteModule } from "../route.ts";
import { addSwitchRoutes } from "./client-switch.ts";
import { addKeyRoutes } from "./keys.ts";
import { addProfileRoutes, showProfile } from "./profile.ts";
import { addRedirectUriRoutes } from "./redirect-uris.ts";
import { addSecretRoutes, secretsSection } from "./secrets.ts";
import { addSecurityRoutes } from "./security.ts";
import { addTab } from "./tabs.ts";

export const clientRoutes: RouteModule = (router, options) => {
  const { storage, urls } = options;
  const { clients, dpopRequirement } = storage;
  const list = endpointsOf(urls);
  const endpoints = Object.fromEntries(list.map(({ name, url }) => [name, url]));

  const showCredentials = addTab(router, options, "client", {
    body(ctx, client) {
      const path = pathTo(ctx, "client");
      const next = isPaid(membershipOf(ctx).plan)
        ? linkButton(`${path}/quick-start`, "Open quick start", "quiet")
        : linkButton(pathTo(ctx, "plan"), "Compare plans");
      return html`<section class="panel"><h2>Client ID</h2>
<p>${copyable(client.clientId, "client ID")}</p>
${next}
</section>
${secretsSection(client, path)}`;
    },
    async data(ctx, client) {
      const [require_dpop, profile] = await Promise.all([
        dpopRequirement.isRequired(membershipOf(ctx).id),
        clients.findProfile(client.clientId),
      ]);
      return { ...showClient(client), ...showProfile(profile), require_dpop, endpoints };
    },
  });
  addSecretRoutes(router, options, showCredentials);
  addKeyRoutes(router, options);
  addRedirectUriRoutes(router, options);
  addProfileRoutes(router, options);
  addSecurityRoutes(router, options);
  addSwitchRoutes(router, options);
  addTab(router, options, "client/endpoints", {
    body: () => html`<section class="panel"><h2>Endpoints</h2>
<p class="soft">Most libraries need only the issuer, and find the others from it.</p>
<dl class="facts">${list.map(
      ({ label, url }) => html`<dt>${label}</dt><dd>${copyable(url, `${label} URL`)}</dd>
`,
    )}</dl></section>`,
    data: () => endpoints,
  });
};

/** Names endpoints as RFC 8414 does, plus those of the API and MCP. */
function endpointsOf({ base, api, mcp }: PublicUrls) {
  return [
    { name: "issuer", label: "Issuer", url: base },
    ...ENDPOINT_LIST.flatMap(({ name, label, path }) =>
      label ? { name: `${name}_endpoint`, label, url: base + path } : [],
    ),
    { name: "api", label: "REST API", url: api },
    { name: "mcp", label: "MCP", url: mcp },
    { name: "openapi", label: "OpenAPI", url: `${api}/openapi.json` },
  ];
}
