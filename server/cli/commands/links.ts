import type { OwnedLink } from "../../../adapters/links/disable.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import {
  type Command,
  type CommandContext,
  commandsOn,
  found,
  reasonOf,
  reasonOption,
} from "../execution/command.ts";

const linkCommand = commandsOn(
  { "<link>": "ID, slug or short URL of the link" },
  "https://go.example.com/spring",
  async ({ args: [text], storage }) => {
    const pathname = /^https?:/i.test(text) ? URL.parse(text)?.pathname : undefined;
    return found(await storage.disabledLinks.find(pathname?.slice(1) ?? text), "Link", text);
  },
);

export const linkCommands: Command[] = [
  linkCommand({
    name: "link show",
    summary: "Show a link and its organization",
    isReadOnly: true,
    run: async (context) => showLink(context, context.link),
  }),
  linkCommand({
    name: "link disable",
    summary: "Stop a link from redirecting",
    description: "Stop a link from redirecting; its organization can't change or enable it",
    options: reasonOption("the organization"),
    example: '--reason "Phishing"',
    async run(context) {
      const { link, options, storage } = context;
      return showLink(context, await storage.disabledLinks.disable(link.id, reasonOf(options), OPERATOR));
    },
  }),
  linkCommand({
    name: "link enable",
    summary: "Let a disabled link redirect again",
    async run(context) {
      return showLink(context, await context.storage.disabledLinks.enable(context.link.id, OPERATOR));
    },
  }),
];

/** @param link undefined if it was deleted meanwhile */
async function showLink(
  { args, urls, organization }: CommandContext & OwnedLink,
  link: OwnedLink["link"] | undefined,
): Promise<object> {
  const { toView } = await import("../../../resources/links/schema.ts");
  return { link: toView(found(link, "Link", args[0]), urls.short), organization };
}
