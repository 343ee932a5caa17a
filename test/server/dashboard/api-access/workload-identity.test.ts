import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isMissing, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import type { Filled, Page } from "../../../harness/clients/test-browser.ts";
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

test("in a browser, the form starts with the fields of GitHub Actions, and links to other platforms", async (t) => {
  const { open, path } = await withBrowser();
  const page = await open("/new");
  t.deepEqual(fieldsOf(page), ["name", "owner", "repository", "jobs", "ref"].concat(IDS, "scopes"));
  t.truthy(page.html.querySelector(`a[href="${path}/new?platform=kubernetes"]`));
  const gitlab = await open("/new?platform=gitlab");
  t.is(gitlab.html.querySelector("#issuer")?.attributes.value, "https://gitlab.com");
  const kubernetes = await open("/new?platform=kubernetes");
  t.deepEqual(fieldsOf(kubernetes), ["name", "issuer", "namespace", "service_account", "scopes"]);
  for (const platform of ["other", "constructor", "%00"]) {
    const other = await open(`/new?platform=${platform}`);
    t.is(other.status, 200);
    t.deepEqual(fieldsOf(other), ["name", "issuer", "subject", "audience", "claims", "scopes"]);
    t.is(other.html.querySelector("#audience")?.attributes.value, service.url);
    t.is(other.html.querySelector("main [aria-current=page]")?.text, "Other issuer");
  }
});

const IDS = ["subject_format", "owner_id", "repository_id"];

/** Returns the names of what the form asks for. */
function fieldsOf({ html }: Page): string[] {
  const inputs = html.querySelectorAll("main form :is(input:not([type=hidden]), select, textarea)");
  return [...new Set(inputs.map(({ attributes }) => attributes.name ?? ""))];
}

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
  const added = await browser.press(await open("/new?platform=other"), "Add trust rule", FIELDS);
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
  const page = await browser.press(await open("/new?platform=other"), "Add trust rule", {
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
  t.is(page.html.querySelector("main [aria-current=page]")?.text, "Other issuer");
  t.deepEqual(await list(), []);
});

const GITHUB = { name: "Deploy", owner: "octo-org", repository: "octo-repo", ref: "main" };
const GITLAB = { name: "Deploy", project: "my-group/sub/my-project", ref: "main" };
const WITH_IDS = { subject_format: "ids", owner_id: "65", repository_id: "74" };

const COMPOSED: [platform: string, fields: Filled, subject: string, claims?: object][] = [
  ["github", GITHUB, "repo:octo-org/octo-repo:ref:refs/heads/main"],
  [
    "github",
    { ...GITHUB, owner: "", repository: "octo-org/octo-repo" },
    "repo:octo-org/octo-repo:ref:refs/heads/main",
  ],
  [
    "github",
    { ...GITHUB, owner: "octo-org", repository: " https://github.com/Octo-Org/octo-repo.git " },
    "repo:octo-org/octo-repo:ref:refs/heads/main",
  ],
  ["github", { ...GITHUB, ref: " feature/* " }, "repo:octo-org/octo-repo:ref:refs/heads/feature/*"],
  ["github", { ...GITHUB, jobs: "tag", ref: "v1.2" }, "repo:octo-org/octo-repo:ref:refs/tags/v1.2"],
  [
    "github",
    { ...GITHUB, jobs: "environment", ref: "Live: EU" },
    "repo:octo-org/octo-repo:environment:Live%3A EU",
  ],
  ["github", { ...GITHUB, jobs: "pull_request", ref: "" }, "repo:octo-org/octo-repo:pull_request"],
  ["github", { ...GITHUB, jobs: "any", ref: "" }, "repo:octo-org/octo-repo:*"],
  ["github", { ...GITHUB, ...WITH_IDS }, "repo:octo-org@65/octo-repo@74:ref:refs/heads/main"],
  [
    "github",
    { ...GITHUB, owner_id: "65", repository_id: "74" },
    "repo:octo-org/octo-repo:ref:refs/heads/main",
    { repository_owner_id: "65", repository_id: "74" },
  ],
  [
    "gitlab",
    GITLAB,
    "project_path:my-group/sub/my-project:ref_type:branch:ref:main",
    { ref_protected: "true" },
  ],
  [
    "gitlab",
    { ...GITLAB, jobs: "any", ref: "", protected: "false", project_id: "20" },
    "project_path:my-group/sub/my-project:*",
    { project_id: "20" },
  ],
  [
    "kubernetes",
    { name: "Pod", issuer: "https://cluster.example", namespace: "jobs", service_account: "links" },
    "system:serviceaccount:jobs:links",
  ],
];

const ISSUERS: Record<string, string> = {
  github: "https://token.actions.githubusercontent.com",
  gitlab: "https://gitlab.com",
  kubernetes: "https://cluster.example",
};

test("in a browser, issuer, audience, subject and claims are composed from the fields of a platform", async (t) => {
  const { browser, open, list } = await withBrowser();
  for (const [platform, fields, subject, claims = {}] of COMPOSED) {
    const added = await browser.press(await open(`/new?platform=${platform}`), "Add trust rule", fields);
    t.regex(added.text, /Trust rule added\./, subject);
    t.like((await list()).at(-1), { issuer: ISSUERS[platform], audience: service.url, subject, claims });
    t.true(added.html.querySelector("main")?.text.includes(subject), "the page shows it");
  }
});

const REFUSED: [platform: string, fields: Filled, field: string, error: RegExp][] = [
  ["github", { ...GITHUB, owner: "" }, "owner", /^Must be the name of a user or organization on GitHub\.$/],
  ["github", { ...GITHUB, owner: "octo*" }, "owner", /^Must be the name of a user/],
  ["github", { ...GITHUB, repository: "other-org/octo-repo" }, "repository", /without its owner/],
  ["github", { ...GITHUB, jobs: "some" }, "jobs", /^Must be one of branch, /],
  ["github", { ...GITHUB, ref: "" }, "ref", /^Must be the name of a branch\.$/],
  ["github", { ...GITHUB, ref: "refs/heads/main" }, "ref", /without refs\/heads\//],
  ["github", { ...GITHUB, ref: "a b" }, "ref", /^Must be a name as in git/],
  ["github", { ...GITHUB, ref: "x".repeat(250) }, "ref", /^Must be shorter/],
  ["github", { ...GITHUB, jobs: "environment", ref: "a*b" }, "ref", /\* at the end only/],
  ["github", { ...GITHUB, jobs: "environment", ref: "" }, "ref", /^Must be the name of an environment\.$/],
  ["github", { ...GITHUB, jobs: "any" }, "ref", /^Must be empty for pull requests and any job\.$/],
  ["github", { ...GITHUB, ...WITH_IDS, owner_id: "" }, "owner_id", /^Is required if tokens have IDs\.$/],
  ["github", { ...GITHUB, repository_id: "x" }, "repository_id", /^Must be a number\.$/],
  ["gitlab", { ...GITLAB, project: "my-project" }, "project", /^Must be a group and a project/],
  ["gitlab", { ...GITLAB, issuer: "http://gitlab.example" }, "issuer", /^Must be an https URL/],
  ["gitlab", { ...GITLAB, jobs: "any" }, "ref", /^Must be empty for any job\.$/],
  ["gitlab", { ...GITLAB, jobs: "tag", ref: "" }, "ref", /^Must be the name of a tag\.$/],
  [
    "kubernetes",
    { name: "Pod", issuer: "https://cluster.example", namespace: "Jobs", service_account: "links" },
    "namespace",
    /^Must be a name as in Kubernetes/,
  ],
];

test("in a browser, a field of a platform that doesn't fit has the error, and keeps its value", async (t) => {
  const { browser, open, list } = await withBrowser();
  for (const [platform, fields, field, error] of REFUSED) {
    const page = await browser.press(await open(`/new?platform=${platform}`), "Add trust rule", fields);
    t.is(page.status, 422, field);
    t.deepEqual(
      page.html.querySelectorAll("[aria-invalid]").map(({ attributes }) => attributes.name),
      [field],
    );
    t.regex(page.html.querySelector(`#${field}-error`)?.text ?? "", error);
    t.is(page.html.querySelector("#name")?.attributes.value, String(fields.name));
  }
  t.deepEqual(await list(), []);
});

test("the page shows configurations with the client ID, and API access links to it", async (t) => {
  const { open, browser, base, owner } = await withBrowser();
  const { body } = await owner.api.get<{ client_id: string }>(`${base}/client`);
  const page = await open();
  for (const name of ["github", "gitlab", "kubernetes"]) {
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
