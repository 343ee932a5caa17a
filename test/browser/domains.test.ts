import test from "ava";
import type { DomainView } from "../../resources/domains/schema.ts";
import { useChromium } from "../harness/browser/chromium.ts";
import { fill, press, waitForError } from "../harness/browser/page-actions.ts";
import { openSignedIn } from "../harness/browser/readable.ts";
import { createTeam } from "../harness/clients/dashboard.ts";
import { startDomainService } from "../harness/domains.ts";

const { service, records, close } = await startDomainService();
const { base, owner } = await createTeam(service);
test.after.always(close);
const inChromium = useChromium();

inChromium(
  "an owner copies the DNS record of a new domain, verifies it, and chooses the domain for a link",
  async (t, browser) => {
    const permissions = ["clipboard-read", "clipboard-write"];
    const { page, complaints } = await openSignedIn(browser, service.url, owner, { permissions });
    await page.goto(`${base}/domains`);
    await page.getByRole("link", { name: "Add domain" }).click();
    await fill(page, { host: "go.acme.example" });
    await press(page, "Add domain");
    await page.waitForURL(/\/domains\/dom_\w+\?done=domain-added$/);
    const { pathname } = new URL(page.url());
    const { dns } = (await owner.api.get<DomainView>(pathname)).body;
    for (const part of ["type", "name", "value"] as const) {
      await press(page, `Copy the ${part} of the DNS record`);
      await page.getByRole("button", { name: "Copied" }).first().waitFor();
      t.is(await page.evaluate("navigator.clipboard.readText()"), dns[part]);
    }
    await press(page, "Verify domain");
    await waitForError(page);
    records.set(dns.name, [dns.value]);
    await press(page, "Verify domain");
    await page.waitForURL(/\?done=domain-verified$/);

    await page.goto(`${base}/links/new`);
    const shortLink = page.locator(".preview dd").first();
    await fill(page, { url: "https://example.com/", slug: "spring" });
    t.is(await shortLink.textContent(), `${new URL(service.url).host}/spring`);
    await page.getByLabel("Domain").selectOption("go.acme.example");
    t.is(await shortLink.textContent(), "go.acme.example/spring");
    await press(page, "Create link");
    await page.waitForURL(/done=link-created/);
    t.is(await page.locator(".copyable code").textContent(), "http://go.acme.example/spring");

    await page.goto(`${base}/links`);
    await page.getByLabel("Domain").selectOption(new URL(service.url).host);
    await page.getByText("No links found").waitFor();
    t.regex(page.url(), /domain=/);
    t.deepEqual(complaints, []);
  },
);
