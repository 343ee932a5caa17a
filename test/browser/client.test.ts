import path from "node:path";
import { rolldown } from "rolldown";
import { newWebhookSecret, signatureHeaders } from "../../resources/webhooks/signature.ts";
import { openPage, useChromium } from "../harness/browser/chromium.ts";
import { startApp } from "../harness/clients/app-server.ts";
import { ROOT } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";

/** Bundles the program with the client, as a web app would. */
async function bundle(): Promise<string> {
  const build = await rolldown({
    input: path.join(ROOT, "test/api/client/programs/walk.ts"),
    platform: "browser",
    resolve: { alias: { "@linkgate/client": path.join(ROOT, "client/src/index.ts") } },
  });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  return output[0].code;
}

const script = await bundle();
const app = await startApp((request, response) => {
  if (request.url === "/walk.js") response.writeHead(200, { "content-type": "text/javascript" }).end(script);
  else response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>An app</title>");
});
const service = await startTestService({ ALLOWED_ORIGINS: app.url });
const inChromium = useChromium();

const SECRET = newWebhookSecret();
const BODY = JSON.stringify({ type: "link.deleted", timestamp: "2026-11-26T10:00:00.000Z", data: {} });

inChromium("the client runs in a browser, with an access token of the application", async (t, browser) => {
  const accessToken = await service.token(await service.createOrganization());
  const headers = signatureHeaders("evt_1", Date.now(), BODY, [SECRET]);
  const args = [
    { baseUrl: service.url, accessToken },
    { body: BODY, headers, secret: SECRET },
  ];
  const { page, complaints } = await openPage(browser);
  await page.goto(app.url);
  const result = await page.evaluate(
    `import("/walk.js").then(({ walk }) => walk(...${JSON.stringify(args)}))`,
  );
  t.deepEqual(result, {
    created: ["https://example.com/a", "https://example.com/b"],
    listed: ["https://example.com/b", "https://example.com/a"],
    code: "invalid_url",
    aborted: "aborted",
    event: "link.deleted",
  });
  t.deepEqual(complaints, []);
});
