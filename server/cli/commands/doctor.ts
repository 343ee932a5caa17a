import type { Command } from "../execution/command.ts";
import { align } from "../execution/output.ts";
import type { Diagnosis } from "./doctor-checks.ts";

// The modules that need the database are loaded when a command runs, so help appears quickly.
export const doctorCommand: Command = {
  name: "doctor",
  summary: "Check settings, database, keys and addresses",
  description: "Check the settings, database, keys and public addresses without changing anything",
  isReadOnly: true,
  needs: "nothing",
  describe: (result) => describeChecks(result as Diagnosis),
  run: async (context) => (await import("./doctor-checks.ts")).checkAll(context),
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
