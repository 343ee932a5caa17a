import { toDate } from "../hosts/table.ts";
import type { AiClient } from "./clients.ts";

/** How a run of a client ended: `error` if it failed, otherwise what it showed last. */
export type Outcome = { client: AiClient; version: string; shown?: string; error?: Error };

const ROWS = /(?<=^\| Program \|.*\n\|(---\|)+\n)(\|.*\n)*/m;
const DATE = / on \w{3} \d+, \d{4}/g;
const FAILURE = /; version .*$/;

/** Replaces the rows of the document by these outcomes. Of the newest versions, only failures are added to the rows. */
export function withOutcomes(document: string, outcomes: Outcome[], { isNewest }: { isNewest: boolean }) {
  const date = toDate(new Date());
  const former = new Map(
    (ROWS.exec(document)?.[0] ?? "").split("\n").map((row) => [cellsOf(row)[0], cellsOf(row)]),
  );
  const rows = outcomes.map((outcome) => {
    const { client, version, error } = outcome;
    if (!isNewest)
      return [client.name, version, identityOf(outcome), `${resultOf(outcome)} on ${date}${noteOf(outcome)}`];
    const [name = client.name, ...cells] = former.get(client.name) ?? [];
    const result = cells.pop()?.replace(FAILURE, "");
    return [name, ...cells, `${result}${error ? `; version ${version} failed on ${date}` : ""}`];
  });
  return document.replace(ROWS, () => rows.map((cells) => `| ${cells.join(" | ")} |\n`).join(""));
}

export function rowsOf(document: string): string | undefined {
  return ROWS.exec(document)?.[0].replaceAll(DATE, "");
}

function cellsOf(row: string): string[] {
  return row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function resultOf({ client, error }: Outcome): string {
  if (error) return "failed";
  return client.missing ? "signed in and listed the tools" : "called a tool";
}

function noteOf({ client, error }: Outcome): string {
  return client.missing && !error ? `; ${client.missing}` : "";
}

function identityOf({ client, shown = "" }: Outcome): string {
  // A result that is text within JSON is quoted more than once.
  const [, clientId = ""] = /"client_id":\s*"([^"]+)"/.exec(shown.replaceAll("\\", "")) ?? [];
  if (clientId.startsWith("https:")) return "its metadata document";
  return client.registers ? "registration" : "the organization’s own client";
}
