import test from "ava";
import { keepsLinks, readExport } from "../../../harness/exports/read.ts";
import { LINKS, SERVICES } from "../../../harness/exports/services.ts";
import { WRITERS } from "../../../harness/exports/writers.ts";

for (const [service, { format, row, keeps }] of Object.entries(SERVICES)) {
  for (const [program, write] of Object.entries(WRITERS)) {
    const rows = LINKS.map(row);
    // Between slashes, either number may be the month.
    const isAmbiguous =
      program === "French Excel" &&
      rows.some((one) => Object.values(one).some((cell) => cell instanceof Date));
    const what = isAmbiguous ? "is refused for its dates" : "is imported as it was";
    test(`an export of ${service} that ${program} writes ${what}`, async (t) => {
      const file = await readExport(write(rows, format === "Shlink" ? "|" : ","));
      t.is(file.format, format);
      if (isAmbiguous) t.deepEqual(file.links.map(issuesOf), Array(LINKS.length).fill("created_at"));
      else keepsLinks(t, file.links, keeps);
    });
  }
}

function issuesOf(result: Awaited<ReturnType<typeof readExport>>["links"][number]): string {
  return typeof result === "object"
    ? (result.error?.issues.map(({ path }) => path.join(".")) ?? []).join()
    : result;
}
