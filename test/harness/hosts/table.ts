import type { Host } from "./host.ts";

// The page shows HTML comments as text, so the list ends where the next heading starts.
const LIST = /(?<=^### Requests that are replayed\n\n).*?(?=\n##)/ms;
const DATE = /^Tested on [^.]*/m;

const IDENTITIES: Record<Host["identifies_by"], string> = {
  document: "These have a metadata document, so they connect to a server with default settings:",
  registration: "These register themselves, so they need `DYNAMIC_REGISTRATION=stateless`:",
};

export function toDate(date: Date): string {
  return date.toLocaleDateString("en-US", { dateStyle: "medium", timeZone: "UTC" });
}

/** Returns the hosts that have connected, by the redirect URIs with which they did, as a table for each identity. */
export function renderList(connected: Map<Host, string[]>): string {
  const tables = Object.entries(IDENTITIES).map(([identity, text]) => {
    const rows = [...connected]
      .filter(([host]) => host.identifies_by === identity)
      .map(
        ([{ name, observed }, uris]) =>
          `| ${name} | ${uris.map((uri) => `\`${uri}\``).join(", ")} | ${toDate(new Date(observed))} |`,
      );
    return [text, "", "| Client | Redirect URIs | Recorded |", "|---|---|---|", ...rows, ""].join("\n");
  });
  return [
    `Tested on ${toDate(new Date())}. Each test sends what the client sends, from discovery to a tool call, as its source code, its metadata document or other servers showed on the day in the last column. The client itself is not run.\n`,
    ...tables,
  ].join("\n");
}

export function withList(document: string, list: string): string {
  return document.replace(LIST, () => list);
}

export function listOf(document: string): string | undefined {
  return LIST.exec(document)?.[0].replace(DATE, "");
}
