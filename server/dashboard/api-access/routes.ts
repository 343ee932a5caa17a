import { isPaid } from "../../../resources/plans.ts";
import { endpointsOf, getClient, listEndpoints } from "../../operations/client.ts";
import { copyable, linkButton } from "../../ui/controls.ts";
import { html } from "../../ui/html.ts";
import { membershipOf, pathTo } from "../access.ts";
import type { RouteModule } from "../route.ts";
import { addKeyRoutes } from "./keys.ts";
import { addProfileRoutes } from "./profile.ts";
import { addRedirectUriRoutes } from "./redirect-uris.ts";
import { addSecretRoutes, secretsSection } from "./secrets.ts";
import { addSecurityRoutes } from "./security.ts";
import { addTab } from "./tabs.ts";

export const clientRoutes: RouteModule = (router, options) => {
  const showCredentials = addTab(router, options, "client", getClient, (ctx, client) => {
    const path = pathTo(ctx, "client");
    const next = isPaid(membershipOf(ctx).plan)
      ? linkButton(`${path}/quick-start`, "Open quick start", "quiet")
      : linkButton(pathTo(ctx, "plan"), "Compare plans");
    return html`<section class="panel"><h2>Client ID</h2>
<p>${copyable(client.clientId, "client ID")}</p>
${next}
</section>
${secretsSection(client, path)}`;
  });
  addSecretRoutes(router, options, showCredentials);
  addKeyRoutes(router, options);
  addRedirectUriRoutes(router, options);
  addProfileRoutes(router, options);
  addSecurityRoutes(router, options);
  addTab(
    router,
    options,
    "client/endpoints",
    listEndpoints,
    () => html`<section class="panel"><h2>Endpoints</h2>
<p class="soft">Most libraries need only the issuer, and find the others from it.</p>
<dl class="facts">${endpointsOf(options.urls).map(
      ({ label, url }) => html`<dt>${label}</dt><dd>${copyable(url, `${label} URL`)}</dd>
`,
    )}</dl></section>`,
  );
};
