import test from "ava";
import { authorizeUrl } from "../../harness/clients/oauth.ts";
import { register } from "../../harness/clients/registration.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
test.after.always(() => service.close());

/** Opens the consent page of an app that registered itself from a website. */
async function openConsent(user: TestUser) {
  const redirect_uri = "https://chat.example.com/oauth/callback";
  const client = await register(service, { client_name: "Chat", redirect_uris: [redirect_uri] });
  const browser = new TestBrowser(service.url);
  const signIn = await browser.open(authorizeUrl(service, client, { redirect_uri }));
  return { browser, page: await browser.signIn(signIn, user) };
}

for (const role of ["owner", "admin"] as const) {
  test(`an ${role} can accept an app in the settings, and continue`, async (t) => {
    const { id } = await service.createOrganization();
    const user = await service.createUser([id], undefined, role);
    const { browser, page } = await openConsent(user);
    t.is(page.html.querySelector("h1")?.text, "You can’t allow access");
    t.false(page.text.includes("Ask an owner"));
    const hrefOf = (text: string) =>
      page.html.querySelectorAll("main a").find((link) => link.text === text)?.attributes.href ?? "";
    const settings = await browser.open(new URL(hrefOf("settings"), page.url).href);
    const form = settings.html.querySelector("#apps form");
    const option = form
      ?.querySelectorAll("[name=allowed_clients] option")
      .find(({ text }) => text === "Any app");
    const any = option?.attributes.value ?? "";
    t.true(page.text.includes("choose “Any app”"));
    await browser.submit(settings, { allowed_clients: any }, form);
    const again = await browser.open(new URL(hrefOf("check again"), page.url).href);
    t.is(again.html.querySelector("h1")?.text, "Allow access?");
    const { searchParams } = new URL((await browser.press(again, "Allow")).url);
    t.truthy(searchParams.get("code"));
  });
}

test("a member gets a link to send to an owner or admin", async (t) => {
  const { id } = await service.createOrganization("Press");
  const { page } = await openConsent(await service.createUser([id]));
  const main = page.html.querySelector("main")?.structuredText.replaceAll(/\s+/g, " ") ?? "";
  t.regex(main, /Press doesn’t allow this app\. Ask an owner or admin/);
  t.true(main.includes(`${service.url}/dashboard/organizations/${id}/settings#apps`));
});
