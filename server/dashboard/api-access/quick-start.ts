import { prefersHtml } from "../../http/request-body.ts";
import { MANAGERS, membershipOf } from "../access.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { clientOf } from "./client.ts";
import { quickStartPage } from "./quick-start-page.ts";
import { snippetsOf } from "./snippets.ts";

/** Adds the page of code snippets that contain the organization's client ID. */
export const quickStartRoutes: RouteModule = (router, { storage, urls, allow }) => {
  router.get(`${ORGANIZATION}/client/quick-start`, allow(...MANAGERS), async (ctx) => {
    const { id } = membershipOf(ctx);
    const { clientId } = await clientOf(storage.clients, id);
    const snippets = snippetsOf(urls, clientId);
    if (!prefersHtml(ctx)) {
      ctx.body = { client_id: clientId, snippets };
      return;
    }
    const intro = "Set the environment variable CLIENT_SECRET, then run any of these examples.";
    showPage(ctx, { title: "Quick start", intro, section: "client" }, quickStartPage(id, snippets));
  });
};
