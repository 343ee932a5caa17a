import test, { type ExecutionContext } from "ava";
import { engine } from "./database/test-database.ts";

/** Declares a serial test whose result doesn't depend on the database, in a file that runs on all of them. */
export function testOnce(title: string, run: (t: ExecutionContext) => Promise<void>): void {
  if (engine === "sqlite") test.serial(title, run);
}
