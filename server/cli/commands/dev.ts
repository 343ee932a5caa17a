import { styleText } from "node:util";
import type { DevServer, SentMail } from "../../dev/index.ts";
import type { ReceivedEvent } from "../../dev/receiver.ts";
import { clockTime, plain } from "../../terminal/log-lines.ts";
import { type Command, CommandError } from "../execution/command.ts";
import { showStatus } from "../execution/progress.ts";

const PORT = "3000";

export const devCommand: Command = {
  name: "dev",
  summary: "Start a sandbox server with sample data",
  options: { "--port <port>": `the port (default: PORT, otherwise ${PORT}); 0 chooses a free one` },
  example: "--port 4000",
  describe: (result) => toText(result as Result),
  async runAlone({ options, print }) {
    showStatus("Creating sample data …");
    // A signal ends the process before the caller clears it.
    process.once("exit", () => showStatus(""));
    // The whole server, which other commands don't need.
    const { runDevServer } = await import("../../dev/index.ts");
    const { readVariables } = await import("../../settings/config.ts");
    const port = String(options.port ?? readVariables("PORT").PORT ?? PORT);
    const onMail = (mail: SentMail) => print({ mail }, mailToText(mail));
    const onEvent = (event: ReceivedEvent) => print({ event }, eventToText(event));
    return toResult(await runDevServer(port, { onMail, onEvent }).catch(rethrow(port)));
  },
};

function rethrow(port: string): (error: Error) => never {
  return (error) => {
    // Its class is loaded with the server only.
    if (error.name === "InvalidSettings")
      throw new CommandError("invalid_port", "The port must be a number from 0 to 65535.");
    const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
    if (code === "EADDRINUSE")
      throw new CommandError("port_in_use", `Port ${port} is in use. Choose another one with --port.`);
    throw error.name === "StartupError" ? new CommandError("failed", error.message) : error;
  };
}

type Result = ReturnType<typeof toResult>;

function toResult({ urls: { base, api, mcp }, seeded: { password, organizations } }: DevServer) {
  return {
    dashboard: `${base}/dashboard`,
    api,
    mcp,
    docs: `${base}/docs`,
    base,
    password,
    organizations: organizations.map(({ description }) => description),
  };
}

function toText({ dashboard, api, mcp, docs, base, password, organizations }: Result): string {
  const [first] = organizations;
  return `
Sandbox server. Press Ctrl-C to stop it and delete its data.

  ${bold("Dashboard")}  ${dashboard}
  ${bold("API")}        ${api}
  ${bold("MCP")}        ${mcp}
  ${bold("Docs")}       ${docs}

Sign in as one of these users, all with the password ${bold(password)}

${usersOf(organizations).join("\n")}
${organizations.map(organizationToText).join("")}
Get a token:

  curl -s ${base}/oauth/token -d grant_type=client_credentials -d client_id=${first?.client_id} -d client_secret=${first?.client_secret}

Emails, and the webhook events of ${first?.name}, are printed below.

linkgate listening on ${base}`;
}

function usersOf(organizations: Result["organizations"]): string[] {
  const roles = organizations.flatMap(({ name, members }) =>
    members.map(({ username, role }) => ({ username, text: `${role} of ${name}` })),
  );
  const byUser = Map.groupBy(roles, ({ username }) => username);
  return [...byUser].map(
    ([username, roles]) => `  ${bold(username.padEnd(9))}  ${roles.map(({ text }) => text).join(", ")}`,
  );
}

function organizationToText({
  name,
  plan,
  links,
  clicks,
  ...client
}: Result["organizations"][number]): string {
  return `
${bold(name)} (${plan === "growth" ? "Growth" : "Premium"} plan): ${links} links, ${clicks.toLocaleString("en")} clicks

  client id      ${client.client_id}
  client secret  ${client.client_secret}
`;
}

function mailToText({ to, subject, text }: SentMail): string {
  const lines = text.trimEnd().split("\n").map(plain).flatMap(wrap);
  return `${now()}  ${bold("email")}  to ${to}: ${plain(subject)}\n${lines.map((line) => `  │ ${line}`).join("\n")}`;
}

/** A longer word, such as a URL, has a line of its own. */
function wrap(line: string): string[] {
  return line.match(/\S.{0,89}(?!\S)|\S+/g) ?? [""];
}

/** `--json` prints all of it. */
function eventToText({ type, data }: ReceivedEvent): string {
  const { slug, url, referrer, client_id, user_id, webhook_id } = data;
  const target = type === "link.clicked" ? referrer && `from ${referrer}` : url && `→ ${url}`;
  const words = [slug ?? client_id ?? webhook_id, target, user_id && `for ${user_id}`];
  return `${now()}  ${bold("event")}  ${type}  ${plain(words.filter(Boolean).join(" "))}`.trimEnd();
}

function now(): string {
  return styleText("gray", clockTime(new Date()));
}

function bold(text: string): string {
  return styleText("bold", text);
}
