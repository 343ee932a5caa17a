import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import type { Configuration, Report, Result } from "../../../certification/src/index.ts";
import { type Command, CommandError, type CommandInput } from "../execution/command.ts";
import { printStatus } from "../execution/progress.ts";

const credentials = z.strictObject({ client_id: z.string().min(1), client_secret: z.string().min(1) });
const configuration = credentials.extend({
  other_client: credentials.optional(),
  scope: z.string().optional(),
  resource: z.url().optional(),
  resource_indicator: z.url().optional(),
  mcp: z.url().optional(),
  redirect_uri: z.url({ hostname: /^(localhost|127\.0\.0\.1|\[::1\])$/ }).optional(),
});

/** Checks a running authorization server, of linkgate or another one, from outside. */
export const conformanceCommand: Command = {
  name: "conformance",
  summary: "Check an authorization server",
  description: "Check a running authorization server against its standards, with requests only",
  arguments: { "<base-url>": "the issuer" },
  options: {
    "--config <file>":
      "JSON: client_id, client_secret and what else the checks may use; without it, only what needs no client",
    "--only <prefix...>": "only checks whose ID starts with a prefix, such as dpop",
    "--junit <file>": "also write the results as JUnit XML",
  },
  example: "https://links.example.com --config conformance.json",
  describe: async (report) => (await loadChecks()).toText(report as Report),
  runAlone: checkConformance,
};

/** Not above, so help appears quickly. */
const loadChecks = () => import("../../../certification/src/index.ts");

async function checkConformance({ args: [base], options, note }: CommandInput): Promise<Report> {
  if (!URL.canParse(base)) throw new CommandError("invalid_url", `${base} is not a URL.`);
  const given = options.config === undefined ? {} : await readConfiguration(String(options.config));
  const { checkServer, MetadataNotFound, toJunit } = await loadChecks();
  const report = await checkServer(base, given, {
    only: options.only as string[] | undefined,
    onResult: progressOf(note),
    // With --json, too: without the address the checks could not continue.
    onBrowser: (address) =>
      void process.stderr.write(`Open ${address} in a browser, and sign in when it asks you to.\n`),
  }).catch((error) => {
    if (error instanceof MetadataNotFound) throw new CommandError("no_metadata", error.message);
    throw error;
  });
  if (typeof options.junit === "string") await writeFile(options.junit, toJunit(report));
  return report;
}

/** Throws CommandError that names the field. */
async function readConfiguration(file: string): Promise<Configuration> {
  const text = await readFile(file, "utf8").catch(() => {
    throw new CommandError("file_not_found", `Can't read ${file}.`);
  });
  try {
    return configuration.parse(JSON.parse(text));
  } catch (error) {
    const [issue] = error instanceof z.ZodError ? error.issues : [];
    const problem = issue ? `${issue.path.join(".") || "the object"}: ${issue.message}` : "it is not JSON";
    throw new CommandError("invalid_config", `${file} is invalid: ${problem}.`);
  }
}

/** Shows how far the checks are, on one line of a terminal. */
function progressOf(note: (text: string) => void) {
  let done = 0;
  return ({ id }: Result, total: number) => {
    done++;
    printStatus(done === total ? "" : `${done} of ${total} ${id}`);
    if (!process.stderr.isTTY && (done % 25 === 0 || done === total)) note(`${done} of ${total} checks`);
  };
}
