import test from "ava";
import { normalizeText } from "../../../resources/http/text.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { connectMcp } from "../../harness/clients/mcp.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const organization = await service.createOrganization();
const owner = await createColleague(service, organization.id, "owner");
const token = await service.token(organization);
test.after.always(() => service.close());

// NFKC makes 18 characters of it, and takes 150 ms for 20,000 of them.
const LONG = "\uFDFA".repeat(20_000);

test("a text is normalized only if it can have the allowed length", (t) => {
  t.is(normalizeText("Cafe\u0301", "NFC", 4), "Café");
  t.is(normalizeText("ﬁ", "NFKC", 1), "fi");
  // Decomposed, a syllable of Hangul has nine bytes.
  const syllables = "각".repeat(100);
  t.is(normalizeText(syllables.normalize("NFD"), "NFC", 100), syllables);
  t.is(normalizeText("𝒜".repeat(300), "NFKC", 100), "A".repeat(300));
  for (const form of ["NFC", "NFKC", "NFKD"] as const) {
    t.is(normalizeText("a".repeat(1201), form, 100), undefined);
    t.is(normalizeText("é".repeat(601), form, 100), undefined);
    t.is(normalizeText(LONG, form, 100), undefined);
  }
});

const json = (method: string, path: string, body: object) => () =>
  apiAt(service.url).send(method, path, { json: body });
const dashboard = (method: string, path: string, body: object) => () =>
  owner.api.send(method, `/dashboard/organizations/${organization.id}${path}`, { json: body });
const PASSWORD = "a long enough password";

const REQUESTS: Record<string, () => Promise<{ status: number }>> = {
  username: json("POST", "/auth/register", { username: LONG, password: PASSWORD }),
  password: json("POST", "/auth/register", { username: "somebody", password: LONG }),
  organization_name: json("POST", "/auth/register", {
    username: "somebody",
    password: PASSWORD,
    organization_name: LONG,
  }),
  "username at sign-in": json("POST", "/auth/login", { username: LONG, password: PASSWORD }),
  "password at sign-in": json("POST", "/auth/login", {
    username: "somebody",
    password: LONG.slice(0, 15_000),
  }),
  "username in a form": () =>
    postForm(`${service.url}/auth/register`, { username: LONG.slice(0, 5000), password: "x" }),
  "name of an organization": dashboard("PATCH", "", { name: LONG }),
  "label of an invitation": dashboard("POST", "/invitations", { label: LONG }),
  "email of an invitation": dashboard("POST", "/invitations", { email: LONG }),
  "new password": () =>
    owner.api.send("POST", "/dashboard/account/password", {
      json: { current_password: owner.password, new_password: LONG },
    }),
  client_name: json("POST", "/oauth/register", {
    client_name: LONG.slice(0, 5000),
    redirect_uris: ["http://localhost/"],
  }),
  title: () =>
    apiAt(service.url, token).send("POST", "/v1/links", {
      json: { url: "https://example.com", title: LONG },
    }),
  tags: () =>
    apiAt(service.url, token).send("POST", "/v1/links", {
      json: { url: "https://example.com", tags: [LONG] },
    }),
  search: () => apiAt(service.url, token).get(`/v1/links?search=${encodeURIComponent(LONG.slice(0, 1500))}`),
};

test.serial("no field is normalized before its length is checked", async (t) => {
  const normalize = String.prototype.normalize;
  let longest = 0;
  String.prototype.normalize = function measure(this: string, form?: string) {
    longest = Math.max(longest, this.length);
    return normalize.call(this, form);
  };
  t.teardown(() => {
    String.prototype.normalize = normalize;
  });
  for (const [field, send] of Object.entries(REQUESTS)) {
    const { status } = await send();
    t.true(status >= 400 && status < 500, `${field}: ${status}`);
    t.true(longest <= 1200, `${field}: ${longest}`);
  }
  const client = await connectMcp(`${service.url}/mcp`, token);
  for (const [name, input] of [
    ["list_links", { search: LONG }],
    ["create_link", { url: "https://example.com", title: LONG }],
  ] as const) {
    t.true((await client.callTool({ name, arguments: input })).isError);
    t.true(longest <= 1200, `${name}: ${longest}`);
  }
  await client.close();
});
