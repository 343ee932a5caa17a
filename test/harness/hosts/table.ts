import type { Host } from "./host.ts";

const TABLE = /(?<=<!-- hosts -->\n).*?(?=<!-- \/hosts -->)/s;
const DATE = /^Tested on [^.]*/m;

const IDENTITIES = { document: "a metadata document", registration: "registration" };
const SETTINGS = {
  document: "–",
  registration: "`DYNAMIC_REGISTRATION=stateless`",
};

/** Returns the table of the hosts that have connected, by the redirect URIs with which they did. */
export function renderTable(connected: Map<Host, string[]>): string {
  const rows = [...connected].map(([{ name, identifies_by }, uris]) =>
    [
      name,
      IDENTITIES[identifies_by],
      uris.map((uri) => `\`${uri}\``).join(", "),
      SETTINGS[identifies_by],
    ].join(" | "),
  );
  const date = new Date().toLocaleDateString("en-US", { dateStyle: "medium", timeZone: "UTC" });
  const lines = ["Client | Identified by | Redirect URIs | Needs", ...rows].map((row) => `| ${row} |`);
  lines.splice(1, 0, "|---|---|---|---|");
  return `Tested on ${date}. Each test replays the client's requests, from discovery to a tool call:\n\n${lines.join("\n")}\n`;
}

/** Replaces the table of a document. */
export function withTable(document: string, table: string): string {
  return document.replace(TABLE, () => table);
}

/** Returns the table of a document without its date. */
export function tableOf(document: string): string | undefined {
  return TABLE.exec(document)?.[0].replace(DATE, "");
}
