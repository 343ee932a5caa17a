import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";

// The migrations of version 0.2 execute about a hundred statements. A process may die after each.
const DEATHS = [2, 5, 20, 40, 60, 80];

test("an interrupted installation is completed by the next start, or it says which commands help", async (t) => {
  for (const statements of DEATHS) {
    const { url, drop } = await createTestDatabase({ empty: true });
    const database = openDatabase(url);
    try {
      let executed = 0;
      const die = (_: unknown, { sql }: { sql: string }) => {
        if (/^(create|alter|drop|update|insert|delete)/i.test(sql) && ++executed === statements)
          throw new Error("the process dies");
      };
      database.knex.on("query-response", die);
      await t.throwsAsync(database.migrate(), { message: "the process dies" });
      database.knex.off("query-response", die);
      const error = await database.migrate().then(
        () => undefined,
        (reason: Error) => reason,
      );
      if (!error) continue;
      t.is(engine, "mysql", error.message);
      t.is(error.name, "IncompleteSchema", `after ${statements}: ${error.message}`);
      const [, commands = ""] = /run (DROP .*;) and start again/.exec(error.message) ?? [];
      for (const command of commands.split(/(?<=;) /)) await database.knex.raw(command);
      await database.close();
      const next = openDatabase(url);
      await next.migrate().finally(next.close);
    } finally {
      await database.close();
      await drop();
    }
  }
});
