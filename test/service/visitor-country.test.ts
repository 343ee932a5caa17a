import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import type { AnalyticsView } from "../../resources/links/analytics.ts";
import { apiAt } from "../harness/clients/api.ts";
import { countryDatabase } from "../harness/country-database.ts";
import { temporaryFolder } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";
import { until } from "../harness/webhooks.ts";

// The file is looked at every few seconds.
export const stage = "long";

const MMDB_PATH = path.join(temporaryFolder("countries"), "countries.mmdb");
writeFileSync(MMDB_PATH, countryDatabase());
const service = await startTestService({ MMDB_PATH });

async function countryOfClick(): Promise<string | null | undefined> {
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  const { id, slug } = await api.createLink();
  await apiAt(service.url).get(`/${slug}`);
  const { countries } = (await api.get<AnalyticsView>(`/v1/links/${id}/analytics`)).body;
  return countries[0]?.country;
}

test("clicks are counted by country; a replaced database is read again, and a broken one changes nothing", async (t) => {
  t.is(await countryOfClick(), "DE");
  writeFileSync(MMDB_PATH, "broken");
  await new Promise((resolve) => setTimeout(resolve, 6000));
  t.is(await countryOfClick(), "DE");
  writeFileSync(MMDB_PATH, countryDatabase("DE", "IT"));
  await until(async () => (await countryOfClick()) === "IT" || undefined);
  t.pass();
});
