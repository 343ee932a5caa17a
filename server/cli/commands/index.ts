import type { Command } from "../execution/command.ts";
import { auditCommands } from "./audit.ts";
import { conformanceCommand } from "./conformance.ts";
import { databaseCommands } from "./database.ts";
import { devCommand } from "./dev.ts";
import { doctorCommand } from "./doctor.ts";
import { importCommand } from "./import.ts";
import { initCommand } from "./init.ts";
import { keyCommands } from "./keys.ts";
import { listenCommand } from "./listen.ts";
import { operationCommands } from "./operations.ts";
import { remoteCommands } from "./remote.ts";
import { serverJsonCommand } from "./server-json.ts";
import { upgradeCommand } from "./upgrade.ts";

const startCommand: Command = {
  name: "start",
  summary: "Start the server (default)",
  // Runs until a signal stops it.
  async runAlone() {
    await import("../../main.ts");
  },
};

export const commands: Command[] = [
  startCommand,
  initCommand,
  devCommand,
  ...databaseCommands,
  upgradeCommand,
  doctorCommand,
  ...operationCommands,
  ...keyCommands,
  importCommand,
  ...auditCommands,
  serverJsonCommand,
  listenCommand,
  ...remoteCommands,
  conformanceCommand,
];
