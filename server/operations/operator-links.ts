import { z } from "zod";
import type { OwnedLink } from "../../adapters/links/disable.ts";
import { found } from "../../resources/http/problem.ts";
import { toView } from "../../resources/links/schema.ts";
import { type Environment, forOperator } from "./operation.ts";
import { reasonOption, reasonSchema } from "./schemas.ts";

export const showLink = forOperator({
  on: "link",
  summary: "Show a link and its organization",
  command: { name: "link show" },
  run: async (request) => describe(request, request.link),
});

export const disableLink = forOperator({
  on: "link",
  summary: "Stop a link from redirecting",
  description: "Its organization can't change or enable it.",
  input: z.strictObject({ reason: reasonSchema }),
  events: ["link.disabled"],
  command: {
    name: "link disable",
    options: { reason: reasonOption("the organization") },
    example: '--reason "Phishing"',
  },
  async run(request) {
    const { storage, link, actor, input } = request;
    return describe(request, await storage.disabledLinks.disable(link.id, input.reason, actor));
  },
});

export const enableLink = forOperator({
  on: "link",
  summary: "Let a disabled link redirect again",
  events: ["link.enabled"],
  command: { name: "link enable" },
  async run(request) {
    const { storage, link, actor } = request;
    return describe(request, await storage.disabledLinks.enable(link.id, actor));
  },
});

/** @param changed undefined if the link was deleted meanwhile */
function describe(
  { urls, link, organization }: Environment & OwnedLink,
  changed: OwnedLink["link"] | undefined,
) {
  return { link: toView(found(changed, `link ${link.id}`), urls.short), organization };
}
