import test from "ava";
import type { HTMLElement } from "node-html-parser";
import { NOT_OURS, resemblesService, validateName } from "../../../server/credentials/names.ts";
import { isProblem } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { authorizeUrl, createApp, openConsent } from "../../harness/clients/oauth.ts";
import { register } from "../../harness/clients/registration.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const user = await createColleague(service, undefined);
test.after.always(() => service.close());

const CHARACTERS = /must not contain control characters or invisible characters/;
const SERVICE = /must not contain “linkgate”, the name of this service, or resemble it/;

const REFUSED: [what: string, name: string, message: RegExp][] = [
  ["a line break", "Acme\nVerified", CHARACTERS],
  ["a right-to-left override", "Acme\u202Eevil", CHARACTERS],
  ["a bidirectional isolate", "Acme\u2066evil", CHARACTERS],
  ["a zero-width space", "Ac\u200Bme", CHARACTERS],
  ["a soft hyphen", "Ac\u00ADme", CHARACTERS],
  ["a line separator", "Acme\u2028Verified", CHARACTERS],
  ["an unpaired surrogate", "Acme\uD83D", /must be valid Unicode/],
  ["stacked marks", `A${"\u0316".repeat(4)}cme`, /more than 3 combining marks/],
  ["the name of the service", "linkgate", SERVICE],
  ["another case and spaces", "Link Gate", SERVICE],
  ["the name of the service in a longer one", "linkgate support", SERVICE],
  ["Cyrillic letters that look like it", "linkg\u0430t\u0435", SERVICE],
  ["full-width letters that look like it", "ｌｉｎｋｇａｔｅ", SERVICE],
  ["digits that look like it", "1inkg4te", SERVICE],
  ["letters with marks", "lïnkgàte", SERVICE],
];

for (const [what, name, message] of REFUSED) {
  test(`a name with ${what} is refused for organizations and apps`, async (t) => {
    const created = await user.api.send("POST", "/dashboard/organizations", { json: { name } });
    isProblem(t, created, { status: 422, code: "invalid_name", fields: ["name"] });
    t.regex(created.body.errors?.[0]?.message ?? "", message);
    const organization = await service.createOrganization();
    const owner = await createColleague(service, organization.id, "owner");
    const path = `/dashboard/organizations/${organization.id}`;
    t.is((await owner.api.send("PATCH", path, { json: { name } })).status, 422);
    const registered = await fetch(`${service.url}/auth/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        username: "new.user",
        password: "a long enough password",
        organization_name: name,
      }),
    });
    t.is(registered.status, 422);
    const client = await fetch(`${service.url}/oauth/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ client_name: name, redirect_uris: ["http://localhost/"] }),
    });
    t.is(client.status, 400);
  });
}

for (const lookalike of [
  ...["ʟɪɴᴋɢᴀᴛᴇ", "ꓡinkgate", "linkgat℮", "liɲkgate", "Ꞁinkgate", "ㅣinkgate", "丨inkgate", "│inkgate"],
  ...["ΙΙΝΚGΑΤΕ", "lıηкցαтє", "𝓁𝒾𝓃𝓀ℊ𝒶𝓉ℯ", "Ⓛⓘⓝⓚⓖⓐⓣⓔ", "l-i.n k_g a t e", "lĩṉḵǧāţé", "linkqate", "IinkgaTǝ"],
]) {
  test(`${lookalike} is rejected as a name and as part of one: it looks like the service's`, (t) => {
    for (const name of [lookalike, `The ${lookalike} team`]) {
      t.true(resemblesService(name));
      t.is(validateName(name), NOT_OURS);
    }
  });
}

test("names that share letters with the service don't resemble it", (t) => {
  for (const name of ["Acme Links", "Linked Gate", "Link Data", "Линкгейт", "林克门", "Λινκ", "رابط"])
    t.is(validateName(name), undefined, name);
});

test("a name is stored without spaces at both ends, and composed", async (t) => {
  const json = { name: "  Cafe\u0301 👩🏽 日本語 עברית " };
  type Created = { organization: { name: string } };
  const { status, body } = await user.api.send<Created>("POST", "/dashboard/organizations", { json });
  t.is(status, 201);
  t.is(body.organization.name, "Caf\u00E9 👩🏽 日本語 עברית");
});

for (const username of ["linkgate", "linkgate-support", "Linkgat3", "1inkgate"]) {
  test(`the username ${username} can't be chosen`, async (t) => {
    const answer = await postForm(`${service.url}/auth/register`, {
      username,
      password: "a long enough password",
    });
    t.is(answer.status, 422);
    t.regex(await answer.text(), /This username is reserved/);
  });
}

test("the consent page names where it redirects before it names the app, isolated from the text around it", async (t) => {
  const { app, own, user: owner } = await createApp(service);
  const page = await openConsent(new TestBrowser(service.url), owner, authorizeUrl(service, app));
  const [target, name] = page.html.querySelectorAll("h1 ~ p");
  t.regex(target?.text ?? "", /^You’ll be redirected to /);
  const isolated = (element: HTMLElement | undefined) =>
    element?.querySelectorAll("bdi").map(({ text }) => text);
  t.deepEqual(isolated(name), [app.name, owner.username]);
  t.deepEqual(isolated(page.html), [app.name, own.name, app.name, owner.username]);
});

test("an app may register with the name of another app, in quotation marks and not verified", async (t) => {
  const client = await register(service, { client_name: "Claude", redirect_uris: ["http://localhost/"] });
  t.regex(client.clientId, /^lgd_/);
});
