import { Problem } from "../../resources/problem.ts";
import { prefersHtml } from "../people/input.ts";
import { quickStartPage } from "../views/dashboard/quick-start.ts";
import { MANAGERS, membershipOf } from "./access.ts";
import { showPage } from "./answers.ts";
import { snippetsOf } from "./snippets.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

/** What to paste to begin with, with the client id in it. */
export const quickStart: Subject = (router, { storage, addresses, allow }) => {
  router.get(`${ORGANIZATION}/client/quick-start`, allow(...MANAGERS), async (ctx) => {
    const { id } = membershipOf(ctx);
    const client = await storage.clients.ofOrganization(id);
    if (!client) {
      throw new Problem(404, "no_client", "The organization gets its client with the first paid plan.");
    }
    const snippets = snippetsOf(addresses, client.clientId);
    if (!prefersHtml(ctx)) {
      ctx.body = { client_id: client.clientId, snippets };
      return;
    }
    const intro = "Each of these works as it is, with your secret in the environment variable CLIENT_SECRET.";
    showPage(ctx, { title: "Quick start", intro, section: "client" }, quickStartPage(id, snippets));
  });
};
