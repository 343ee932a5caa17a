import { KEY_PUBLISH_MS, KEY_SPREAD_MS } from "../../keys/shared-keys.ts";
import type { Command } from "../execution/command.ts";

// The modules that need the database are loaded when a command runs, so help appears quickly.
export const keyCommands: Command[] = [
  {
    name: "keys list",
    summary: "List the keys of the service and their state",
    description: "List the keys of the service and their state, never the keys themselves",
    isReadOnly: true,
    run: async (context) => (await import("./key-rotation.ts")).listAllKeys(context),
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
    run: async (context) => (await import("./key-rotation.ts")).rotateKeys(context),
  },
  {
    name: "keys prune",
    summary: "Remove older encryption keys from their file",
    description: "Remove older encryption keys from their file, once nothing needs them",
    irreversible: () => "Remove the older encryption keys?",
    run: async (context) => (await import("./key-rotation.ts")).pruneEncryptionKeys(context),
  },
];
