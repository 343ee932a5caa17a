import { styleText } from "node:util";
import type { DevServer, SentMail } from "../../dev/index.ts";
import type { ReceivedEvent } from "../../dev/receiver.ts";
import { clockTime, plain } from "../../terminal/log-lines.ts";
import { type Command, CommandError } from "../execution/command.ts";
import { printStatus } from "../execution/progress.ts";

const PORT = "3000";

export const devCommand: Command = {
  name: "dev",
  summary: "Start a sandbox server with sample data",
  options: { "--port <port>": `the port (default: PORT, otherwise ${PORT}); 0 chooses a free one` },
  example: "--port 4000",
  describe: (result) => describeServer(result as DevServer),
  async runAlone({ options, print }) {
    printStatus("Creating sample data …");
    // A signal ends the process before the caller clears it.
    process.once("exit", () => printStatus(""));
    // The whole server, which other commands don't need.
    const { runDevServer } = await import("../../dev/index.ts");
    const { readVariables } = await import("../../settings/config.ts");
    const port = String(options.port ?? readVariables("PORT").PORT ?? PORT);
    const onMail = (mail: SentMail) => print({ mail }, describeMail(mail));
    const onEvent = (event: ReceivedEvent) => print({ event }, describeEvent(event));
    return runDevServer(port, { onMail, onEvent }).catch((error: Error) => {
      // Its class is loaded with the server only.
      if (error.name === "InvalidSettings")
        throw new CommandError("invalid_port", "The port must be a number from 0 to 65535.");
      const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
      if (code === "EADDRINUSE")
        throw new CommandError(
          "port_in_use",
          `Port ${port} is in use: choose another one with --port or PORT.`,
        );
      throw error.name === "StartupError" ? new CommandError("failed", error.message) : error;
    });
  },
};

function describeServer({ dashboard, api, mcp, docs, base, password, organizations }: DevServer): string {
  const [first] = organizations;
  const roles = organizations.flatMap(({ name, members }) =>
    members.map(({ username, role }) => ({ username, text: `${role} of ${name}` })),
  );
  const users = [...Map.groupBy(roles, ({ username }) => username)].map(
    ([username, own]) => `  ${bold(username.padEnd(9))}  ${own.map(({ text }) => text).join(", ")}`,
  );
  const clients = organizations.map(
    ({ name, plan, links, clicks, client_id, client_secret }) => `
${bold(name)} (${plan === "growth" ? "Growth" : "Premium"} plan): ${links} links, ${clicks.toLocaleString("en")} clicks

  client id      ${client_id}
  client secret  ${client_secret}
`,
  );
  return `
Sandbox server. Press Ctrl-C to stop it and delete its data.

  ${bold("Dashboard")}  ${dashboard}
  ${bold("API")}        ${api}
  ${bold("MCP")}        ${mcp}
  ${bold("Docs")}       ${docs}

Sign in as one of these users, all with the password ${bold(password)}

${users.join("\n")}
${clients.join("")}
Get a token:

  curl -s ${base}/oauth/token -d grant_type=client_credentials -d client_id=${first?.client_id} -d client_secret=${first?.client_secret}

Emails, and the webhook events of ${first?.name}, are printed below.

linkgate listening on ${base}`;
}

function describeMail({ to, subject, text }: SentMail): string {
  // A longer word, such as a URL, has a line of its own.
  const wrap = (line: string) => plain(line).match(/\S.{0,89}(?!\S)|\S+/g) ?? [""];
  const lines = text.trimEnd().split("\n").flatMap(wrap);
  return `${now()}  ${bold("email")}  to ${to}: ${plain(subject)}\n${lines.map((line) => `  │ ${line}`).join("\n")}`;
}

/** `--json` prints all of it. */
function describeEvent({ type, data }: ReceivedEvent): string {
  const { slug, url, referrer, client_id, user_id, webhook_id } = data;
  const target = type === "link.clicked" ? referrer && `from ${referrer}` : url && `→ ${url}`;
  const words = [slug ?? client_id ?? webhook_id, target, user_id && `for ${user_id}`];
  return `${now()}  ${bold("event")}  ${type}  ${plain(words.filter(Boolean).join(" "))}`.trimEnd();
}

const now = () => styleText("gray", clockTime(new Date()));
const bold = (text: string) => styleText("bold", text);
