import type { Storage } from "../../adapters/index.ts";
import type { OwnedLink } from "../../adapters/links/switch.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { toView } from "../../resources/links/schema.ts";
import { publicUrlsOf } from "../settings/public-urls.ts";
import { type Command, type CommandContext, CommandError } from "./command.ts";
import { reasonOf, reasonOption } from "./reason.ts";

const LINK = { "<link>": "ID, slug or short URL of the link" };
const EXAMPLE = "https://go.example.com/spring";

/** `link …` */
export const linkCommands: Command[] = [
  {
    name: "link show",
    summary: "Show a link and the organization that it belongs to",
    arguments: LINK,
    example: EXAMPLE,
    isReadOnly: true,
    needs: "schema",
    async run(context) {
      return show(context, await findLink(context.storage, context.args[0]));
    },
  },
  {
    name: "link disable",
    summary: "Stop a link from redirecting; its organization can't change or enable it",
    arguments: LINK,
    options: reasonOption("the organization"),
    example: `${EXAMPLE} --reason "Phishing"`,
    needs: "schema",
    async run(context) {
      const { args, options, storage } = context;
      const reason = reasonOf(options);
      const found = await findLink(storage, args[0]);
      const link = await storage.linkSwitches.disable(found.link.id, reason, OPERATOR);
      if (!link) throw linkNotFound(args[0]);
      return show(context, { ...found, link });
    },
  },
  {
    name: "link enable",
    summary: "Let a disabled link redirect again",
    arguments: LINK,
    example: EXAMPLE,
    needs: "schema",
    async run(context) {
      const { args, storage } = context;
      const found = await findLink(storage, args[0]);
      const link = await storage.linkSwitches.enable(found.link.id, OPERATOR);
      if (!link) throw linkNotFound(args[0]);
      return show(context, { ...found, link });
    },
  },
];

function show({ settings }: CommandContext, { link, organization }: OwnedLink): object {
  return { link: toView(link, publicUrlsOf(settings, settings.PORT).short), organization };
}

/** Returns the link with an ID, a slug or a short URL. @throws CommandError `not_found` */
async function findLink(storage: Storage, text = ""): Promise<OwnedLink> {
  const pathname = /^https?:/i.test(text) ? URL.parse(text)?.pathname : undefined;
  const found = await storage.linkSwitches.find(pathname?.slice(1) ?? text);
  if (!found) throw linkNotFound(text);
  return found;
}

function linkNotFound(text: string | undefined): CommandError {
  return new CommandError("not_found", `Link ${text} not found.`);
}
