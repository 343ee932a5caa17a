import { readFileSync, writeFileSync } from "node:fs";
import test from "ava";
import { chromium } from "playwright-core";
import { AI_CLIENTS } from "../harness/ai-clients/clients.ts";
import { IS_NEWEST, install } from "../harness/ai-clients/install.ts";
import { runClient } from "../harness/ai-clients/run.ts";
import { type Outcome, rowsOf, withOutcomes } from "../harness/ai-clients/table.ts";
import { stopPrograms } from "../harness/program.ts";
import { OPERATOR, startTestService, type TestService } from "../harness/service.ts";

const DOCUMENT = new URL("../../docs/mcp.md", import.meta.url);

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const byDefault = await prepare(await startTestService());
const registering = await prepare(await startTestService({ DYNAMIC_REGISTRATION: "stateless" }));
test.after.always(async () => {
  stopPrograms();
  await browser.close();
  await Promise.all([byDefault.service.close(), registering.service.close()]);
});

async function prepare(service: TestService) {
  const organization = await service.createOrganization();
  await service.storage.clients.setRedirectUris(organization.id, ["http://127.0.0.1/callback"], OPERATOR);
  return { browser, service, organization, user: await service.createUser([organization.id]) };
}

const outcomes: Outcome[] = [];
for (const client of AI_CLIENTS) {
  const installed = install(client);
  installed.catch(() => undefined); // its test reports that
  const outcome: Outcome = { client, version: "newest" };
  test.serial(
    `${client.name} signs in and ${client.missing ? "lists the tools" : "calls a tool"}`,
    async (t) => {
      outcomes.push(outcome);
      const person = client.registers ? registering : byDefault;
      try {
        const installation = await installed;
        outcome.version = installation.version;
        outcome.shown = await runClient(client, installation, person);
        t.true(outcome.shown.includes(client.missing ? "whoami" : person.user.id), outcome.shown);
      } catch (error) {
        outcome.error = error as Error;
        throw error;
      }
    },
  );
}

test.serial("the documentation lists the AI clients that were run", (t) => {
  const document = readFileSync(DOCUMENT, "utf8");
  const written = withOutcomes(document, outcomes, { isNewest: IS_NEWEST });
  if (process.env.WRITE_HOSTS) writeFileSync(DOCUMENT, written);
  else if (!IS_NEWEST) t.is(rowsOf(document), rowsOf(written), "run npm run docs:hosts");
  t.is(outcomes.length, AI_CLIENTS.length);
});
