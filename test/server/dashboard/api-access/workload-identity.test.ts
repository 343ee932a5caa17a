import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isMissing, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

type Rule = Record<string, unknown> & { id: string };

const RULE = {
  name: "Deploy",
  issuer: "https://token.actions.githubusercontent.com",
  subject: "repo:octo-org/octo-repo:ref:refs/heads/main",
  audience: "https://links.example",
  claims: { repository_owner_id: "65" },
  scopes: ["links:read", "webhooks:write"],
};

/** Creates a team with functions that manage its trust rules as the owner. */
async function withRules() {
  const team = await createTeam(service);
  const path = `${team.base}/workload-identity`;
  const { api } = team.owner;
  return {
    ...team,
    path,
    create: (json: object = RULE) => api.send<Rule>("POST", path, { json }),
    list: async () => (await api.get<{ data: Rule[] }>(path)).body.data,
  };
}

async function withBrowser() {
  const team = await withRules();
  const { browser } = await browserOf(service, team.owner);
  return { ...team, browser, open: (address = "") => browser.open(service.url + team.path + address) };
}

test("an owner adds, lists and deletes a trust rule", async (t) => {
  const { create, list, owner, path } = await withRules();
  const created = await create();
  t.is(created.status, 201);
  const { id, created_at, ...rest } = created.body;
  t.deepEqual(rest, { ...RULE, created_by: owner.username, last_used_at: null });
  t.regex(id, /^trs_/);
  t.regex(String(created_at), /Z$/);
  t.deepEqual(await list(), [created.body]);
  t.is((await owner.api.send("DELETE", `${path}/${id}`)).status, 204);
  t.deepEqual(await list(), []);
  isMissing(t, await owner.api.send("DELETE", `${path}/${id}`));
});

test("without an audience and claims, a rule requires this server as the audience", async (t) => {
  const { create } = await withRules();
  const { audience: _, claims: __, ...fields } = RULE;
  t.like((await create(fields)).body, { audience: service.url, claims: {} });
});

test("invalid rules are rejected, with every invalid field", async (t) => {
  const { create, list } = await withRules();
  isProblem(t, await create({ ...RULE, subject: "*" }), {
    status: 422,
    code: "invalid_subject",
    fields: ["subject"],
  });
  isProblem(t, await create({ ...RULE, issuer: "http://issuer.example", claims: { sub: "x" } }), {
    status: 422,
    code: "invalid_request",
    fields: ["issuer", "claims.sub"],
  });
  t.deepEqual(await list(), []);
});

test("an organization has at most 20 trust rules", async (t) => {
  const { create, organization, list, owner, path } = await withRules();
  const { name: _, ...rule } = { ...RULE, scopes: ["links:read" as const] };
  for (let count = 0; count < 20; count++)
    await service.storage.trustRules.create(organization.id, { name: "One", ...rule }, OPERATOR);
  isProblem(t, await create(), { status: 409, code: "trust_rule_limit" });
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(service.url + path);
  t.regex(page.text, /20 of 20 trust rules\. Delete one to add another\./);
  t.is(page.html.querySelector(`a[href="${path}/new"]`), null);
  await owner.api.send("DELETE", `${path}/${(await list())[0]?.id}`);
  t.is((await create()).status, 201);
});

test("an organization that was never on a paid plan has no client to trust workloads with", async (t) => {
  const { base, owner } = await createTeam(service, "free");
  const reply = await owner.api.send("POST", `${base}/workload-identity`, { json: RULE });
  isProblem(t, reply, { status: 404, code: "no_client" });
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(`${service.url}${base}/workload-identity`);
  t.is(page.status, 200);
  t.regex(page.text, /Upgrade to Growth or Premium/);
});

test("in a browser, the form starts with what GitHub Actions needs", async (t) => {
  const { open, path } = await withBrowser();
  const page = await open("/new");
  const initialOf = (name: string) => page.html.querySelector(`#${name}`)?.attributes.value;
  t.is(initialOf("issuer"), RULE.issuer);
  t.is(initialOf("audience"), service.url);
  t.is(initialOf("subject"), "");
  t.truthy(page.html.querySelector(`a[href="${path}/new?platform=kubernetes"]`));
  const gitlab = await open("/new?platform=gitlab");
  t.is(gitlab.html.querySelector("#issuer")?.attributes.value, "https://gitlab.com");
  for (const platform of ["kubernetes", "other", "constructor", "%00"]) {
    const other = await open(`/new?platform=${platform}`);
    t.is(other.status, 200);
    t.is(other.html.querySelector("#issuer")?.attributes.value, "");
  }
});

const FIELDS = {
  name: "Deploy & more",
  issuer: RULE.issuer,
  subject: RULE.subject,
  claims: "repository_owner_id=65\r\n\r\n ref_type = branch \r\nsha=a=b",
  scopes: ["links:write", "webhooks:read"],
};

test("in a browser, a rule is added and deleted without JavaScript", async (t) => {
  const { browser, open, list, path } = await withBrowser();
  t.regex((await open()).text, /No trust rules yet/);
  const added = await browser.press(await open("/new"), "Add trust rule", FIELDS);
  t.is(added.url, `${service.url}${path}?done=trust-rule-added`);
  t.regex(added.text, /Trust rule added\./);
  t.regex(added.text, /Deploy &amp; more/);
  t.like((await list())[0], {
    audience: service.url,
    claims: { repository_owner_id: "65", ref_type: "branch", sha: "a=b" },
    scopes: ["links:write", "webhooks:read"],
  });
  const deleted = await browser.press(added, "Delete trust rule Deploy & more");
  t.regex(deleted.text, /Trust rule deleted\./);
  t.deepEqual(await list(), []);
});

test("in a browser, a rejected rule is shown again with its values and the errors", async (t) => {
  const { browser, open, list } = await withBrowser();
  const page = await browser.press(await open("/new?platform=gitlab"), "Add trust rule", {
    ...FIELDS,
    issuer: "http://gitlab.example",
    subject: "a*b",
    claims: "ref",
    scopes: [],
  });
  t.is(page.status, 422);
  t.deepEqual(
    page.html.querySelectorAll("[aria-invalid]").map(({ attributes }) => attributes.name),
    ["issuer", "subject", "claims"],
  );
  t.regex(page.text, /Select at least one permission\./);
  t.is(page.html.querySelector("#claims-error")?.text, "ref must have a value of 1 to 255 characters.");
  t.is(page.html.querySelector("#name")?.attributes.value, "Deploy & more");
  t.is(page.html.querySelector("#claims")?.text, "ref");
  t.is(page.html.querySelector("main [aria-current=page]")?.text, "GitLab CI/CD");
  t.deepEqual(await list(), []);
});

test("the page shows configurations with the client ID, and API access links to it", async (t) => {
  const { open, browser, base, owner } = await withBrowser();
  const { body } = await owner.api.get<{ client_id: string }>(`${base}/client`);
  const page = await open();
  for (const name of ["github-actions", "gitlab-ci", "kubernetes"]) {
    const copied = page.html.querySelector(`#${name} [data-copy]`)?.attributes["data-copy"] ?? "";
    t.true(copied.includes(body.client_id), name);
    t.true(copied.includes(service.url), name);
  }
  const client = await browser.open(`${service.url}${base}/client`);
  t.truthy(client.html.querySelector(`a[href="${base}/workload-identity"]`));
});

test("additions and deletions are in the audit log", async (t) => {
  const { create, owner, path, base } = await withRules();
  const { id } = (await create()).body;
  await owner.api.send("DELETE", `${path}/${id}`);
  type Entry = { type: string; summary: string; data: object };
  const { body } = await owner.api.get<{ data: Entry[] }>(`${base}/audit`);
  const entries = body.data.filter(({ type }) => type.startsWith("trust_rule."));
  t.deepEqual(
    entries.map(({ type, summary }) => [type, summary]),
    [
      ["trust_rule.deleted", "deleted trust rule “Deploy”"],
      [
        "trust_rule.created",
        `added trust rule “Deploy” for ${RULE.subject} of ${RULE.issuer}: links:read, webhooks:write`,
      ],
    ],
  );
  for (const { data } of entries) t.deepEqual(data, { trust_rule_id: id, ...RULE });
});
