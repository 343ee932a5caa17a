import test, { type ExecutionContext } from "ava";
import { reportTable } from "../report.ts";
import type { Plan } from "./plans.ts";

/** Returns a function that makes a module of the suite a test, and the names of those that are. */
export function createModules(prefix = "") {
  const tested = new Set<string>();
  function module(name: string, run: (t: ExecutionContext) => Promise<void>): void {
    tested.add(name);
    // Some advance the clock.
    test.serial(prefix + name, run);
  }
  return { tested, module };
}

/** Checks the table of a plan in `docs/`. Modules pass unless they are exceptions: reasons by result and module. */
export function reportModules(
  t: ExecutionContext,
  { name, modules }: Plan,
  exceptions: Record<string, Record<string, string>>,
): void {
  const rows = modules.map((module) => {
    const [result, reasons] = Object.entries(exceptions).find(([, names]) => module in names) ?? [];
    return [`\`${module}\``, result ?? "passed", reasons?.[module] ?? ""];
  });
  reportTable(t, name, [["Module", "Result", "Reason"], ...rows]);
}

/** Checks that members of the metadata list these values, at least. */
export function areListed(
  t: ExecutionContext,
  metadata: Record<string, unknown>,
  expected: Record<string, string[]>,
): void {
  for (const [name, values] of Object.entries(expected))
    t.deepEqual(new Set(values).difference(new Set(metadata[name] as string[])), new Set(), name);
}
