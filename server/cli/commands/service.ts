import type { Report } from "../../../certification/src/index.ts";
import { KEY_PUBLISH_MS, KEY_SPREAD_MS } from "../../keys/shared-keys.ts";
import { type Command, CommandError, EXAMPLE_ORG, ORG_ID } from "../execution/command.ts";
import { align } from "../execution/lines.ts";
import { createProgress, number, shareOf } from "../execution/progress.ts";
import type { BackupResult, CopyResult } from "./database.ts";
import type { Diagnosis } from "./doctor.ts";
import type { ImportResult } from "./import.ts";
import type { ListenResult } from "./listen.ts";

// Modules that need the database or large packages are loaded by the commands that use them, so help appears quickly.

export const keyCommands: Command[] = [
  {
    name: "keys list",
    summary: "List the keys of the service and their state",
    description: "List the keys of the service and their state, never the keys themselves",
    isReadOnly: true,
    run: async (context) => (await import("./keys.ts")).listAllKeys(context),
  },
  {
    name: "keys rotate",
    summary: "Replace a key",
    description: "Replace a key; running servers follow without a restart",
    arguments: { "<signing|cookies|encryption>": "the kind of key" },
    options: {
      "--publish-for <time>": `how long a new signing key is published before it signs, at least ${KEY_SPREAD_MS / 1000}s (default: ${KEY_PUBLISH_MS / 60_000}m)`,
      "--compromised": "stop honoring the previous signing or cookie keys now",
    },
    example: "signing",
    irreversible: ({ args: [kind], options }) =>
      options.compromised ? `Reject everything that older ${kind} keys signed?` : undefined,
    run: async (context) => (await import("./keys.ts")).rotateKeys(context),
  },
  {
    name: "keys prune",
    summary: "Remove older encryption keys from their file",
    description: "Remove older encryption keys from their file, once nothing needs them",
    irreversible: () => "Remove the older encryption keys?",
    run: async (context) => (await import("./keys.ts")).pruneEncryptionKeys(context),
  },
];

export const databaseCommands: Command[] = [
  {
    name: "migrate",
    summary: "Apply pending migrations",
    needs: "nothing",
    run: async (context) => (await import("./database.ts")).migrate(context),
  },
  {
    name: "sweep",
    summary: "Delete expired rows now",
    description: "Delete expired rows now; the server does this every minute",
    async run({ storage }) {
      const showProgress = createProgress("rows");
      const onProgress = (done: number, total: number) => showProgress(done, shareOf(done, total));
      const deleted = await storage.purgeExpired(undefined, onProgress);
      if (!deleted)
        throw new CommandError("busy", "Another process is deleting expired rows. Try again later.");
      return { deleted };
    },
  },
  {
    name: "backup",
    summary: "Back up a SQLite database while the server runs",
    arguments: { "<file>": "the backup, which must not exist yet" },
    options: {
      "--with-key":
        "copy the encryption key to <file>.key. Anyone with both files can read every secret in the database",
    },
    example: "backup.sqlite",
    describe: (result) => describeBackup(result as BackupResult),
    needs: "database",
    run: async (context) => (await import("./database.ts")).backUp(context),
  },
  {
    name: "copy",
    summary: "Copy the database to an empty one",
    description:
      "Copy the database to an empty one, on the same or another system; continues if it was interrupted",
    options: {
      "--from <url>": "the source. Stop every server that uses it",
      "--to <url>": "the target: an empty database, or one with an unfinished copy of the source",
    },
    example: "--from sqlite:data/linkgate.sqlite --to postgres://localhost/linkgate",
    describe: (result) => describeCopy(result as CopyResult),
    runAlone: async (input) => (await import("./database.ts")).copy(input),
  },
];

function describeBackup({ file, bytes, key_file }: BackupResult): string {
  const key = key_file ? `, and its encryption key to ${key_file}` : "";
  return `Backed up the database to ${file} (${(bytes / 1_000_000).toFixed(1)} MB)${key}.`;
}

function describeCopy({ from, to, tables }: CopyResult): string {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return `Copied ${tables.length} tables with ${number(rows)} rows from ${from} to ${to}, and verified them.`;
}

export const doctorCommand: Command = {
  name: "doctor",
  summary: "Check settings, database, keys and addresses",
  description: "Check the settings, database, keys and public addresses without changing anything",
  isReadOnly: true,
  needs: "nothing",
  describe: (result) => describeChecks(result as Diagnosis),
  run: async (context) => (await import("./doctor.ts")).checkAll(context),
};

function describeChecks({ checks }: Diagnosis): string {
  const lines = align(
    checks.map(({ name, ok, detail }) => {
      const mark = ok ? (detail.startsWith("not checked") ? "–" : "✓") : "✗";
      return [`${mark} ${name}`, detail];
    }),
  );
  const problems = checks.filter(({ ok }) => !ok).length;
  const count = problems === 1 ? "1 problem." : `${problems || "No"} problems.`;
  return [...lines, "", count].join("\n");
}

export const importCommand: Command = {
  name: "import",
  summary: "Import links from a CSV or JSON file",
  description:
    "Import links from a CSV or JSON file of Bitly, Dub, Shlink, YOURLS, Kutt, Short.io or linkgate",
  arguments: { "<file>": "the file; its format is recognized by its columns" },
  options: {
    "--org <org-id>": ORG_ID,
    "--dry-run": "check every row, and store nothing",
    "--rejected <file>": "write the refused rows to a new CSV file, with the reasons",
  },
  example: `links.csv --org ${EXAMPLE_ORG}`,
  describe: async (result) => (await import("./import.ts")).describeImport(result as ImportResult),
  run: async (context) => (await import("./import.ts")).importFile(context),
};

/** Prints the events of a running server, and forwards them as a webhook would. */
export const listenCommand: Command = {
  name: "listen",
  summary: "Print events as they happen, and forward them",
  description:
    "Print events of a running server as they happen, and forward them to a local receiver of webhooks",
  options: {
    "--forward <url>": "where to send each event, signed like the request of a webhook",
    "--server <url>": "the server (default: http://localhost:3000)",
    "--types <type...>": "only events of these types, such as link.created",
    "--after <cursor>": "the position to start after, as this command prints it at its end (default: now)",
  },
  example: "--forward http://localhost:8080/",
  describe: async (result) => (await import("./listen.ts")).describeListening(result as ListenResult),
  runAlone: async (input) => (await import("./listen.ts")).listen(input),
};

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
  describe: async (report) => (await import("./conformance.ts")).describeReport(report as Report),
  runAlone: async (input) => (await import("./conformance.ts")).checkConformance(input),
};
