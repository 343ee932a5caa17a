import test from "ava";
import {
  createTrustingOrganization,
  exchange,
  FORMS,
  type Form,
  isRefused,
  jobToken,
} from "../../harness/clients/workload.ts";
import { startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { startTestService } from "../../harness/service.ts";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);
const organization = await createTrustingOrganization(service, issuer);
test.after.always(() => Promise.all([service.close(), issuer.stop()]));

const BOTH = Object.keys(FORMS) as Form[];
const now = () => Math.floor(Date.now() / 1000);

type Job = { claims?: Record<string, unknown>; header?: Record<string, unknown> };
const WRONG_CLAIMS: [what: string, job: () => Job, description: RegExp][] = [
  [
    "another branch",
    () => ({ claims: { sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/feature" } }),
    /check sub$/,
  ],
  [
    "another repository",
    () => ({ claims: { sub: "repo:octo-org@65/other@75:ref:refs/heads/main" } }),
    /check sub$/,
  ],
  ["a pull request", () => ({ claims: { sub: "repo:octo-org@65/octo-repo@74:pull_request" } }), /check sub$/],
  [
    "the subject in another case",
    () => ({ claims: { sub: "REPO:octo-org@65/octo-repo@74:ref:refs/heads/main" } }),
    /check sub$/,
  ],
  [
    "the subject with a longer branch",
    () => ({ claims: { sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/main2" } }),
    /check sub$/,
  ],
  [
    "the subject with a trailing space",
    () => ({ claims: { sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/main " } }),
    /check sub$/,
  ],
  [
    "a subject with quotes and line breaks",
    () => ({ claims: { sub: 'a"\\\n<b>é' } }),
    /sub a\?\?\?<b>\?, .*check sub$/,
  ],
  ["an empty subject", () => ({ claims: { sub: "" } }), /check sub$/],
  ["no subject", () => ({ claims: { sub: undefined } }), /sub is missing$/],
  ["a subject that is a number", () => ({ claims: { sub: 5 } }), /sub must be a string$/],
  [
    "a subject that can't become text",
    () => ({ claims: { sub: { toString: 1, valueOf: 1 } } }),
    /sub must be a string$/,
  ],
  [
    "an audience that can't become text",
    () => ({ claims: { aud: [service.url, { toString: 1, valueOf: 1 }] } }),
    /check aud$/,
  ],
  ["another owner", () => ({ claims: { repository_owner_id: "66" } }), /check repository_owner_id$/],
  [
    "an owner that is a list",
    () => ({ claims: { repository_owner_id: ["65"] } }),
    /check repository_owner_id$/,
  ],
  ["no owner", () => ({ claims: { repository_owner_id: undefined } }), /check repository_owner_id$/],
  [
    "another audience",
    () => ({ claims: { aud: "https://sts.example.com" } }),
    /aud has an unexpected value$/,
  ],
  ["the API as audience", () => ({ claims: { aud: `${service.url}/v1` } }), /aud has an unexpected value$/],
  [
    "the audience with a trailing slash",
    () => ({ claims: { aud: `${service.url}/` } }),
    /aud has an unexpected value$/,
  ],
  ["several audiences", () => ({ claims: { aud: [service.url, "https://sts.example.com"] } }), /check aud$/],
  ["an empty list of audiences", () => ({ claims: { aud: [] } }), /aud has an unexpected value$/],
  ["no audience", () => ({ claims: { aud: undefined } }), /aud is missing$/],
  ["an expiry more than the clock skew ago", () => ({ claims: { exp: now() - 40 } }), /has expired$/],
  ["no expiry", () => ({ claims: { exp: undefined } }), /exp is missing$/],
  ["an expiry that is no number", () => ({ claims: { exp: "never" } }), /exp has an unexpected value$/],
  ["no time of issue", () => ({ claims: { iat: undefined } }), /iat is missing$/],
  ["a time of issue more than an hour ago", () => ({ claims: { iat: now() - 3700 } }), /is too old$/],
  ["a time of issue in the future", () => ({ claims: { iat: now() + 120 } }), /was issued in the future$/],
  ["a validity that begins later", () => ({ claims: { nbf: now() + 120 } }), /is not valid yet$/],
  ["a type that is no text", () => ({ header: { typ: 5 } }), /wrong typ$/],
  ["a type that can't become text", () => ({ header: { typ: { toString: 1, valueOf: 1 } } }), /wrong typ$/],
  ["a type that is a list", () => ({ header: { typ: ["JWT"] } }), /wrong typ$/],
  ["the type of an access token", () => ({ header: { typ: "at+jwt" } }), /wrong typ$/],
];

for (const [what, job, description] of WRONG_CLAIMS) {
  for (const form of BOTH) {
    test(`a token with ${what} is refused as ${form}`, async (t) => {
      const { claims = {}, header = {} } = job();
      const token = await jobToken(service, issuer, claims, header);
      isRefused(t, form, await exchange(service, organization, form, token), description);
    });
  }
}

test("a * in the subject of a token is no pattern", async (t) => {
  const sub = "repo:octo-org@65/octo-repo@74:*";
  isRefused(
    t,
    "grant",
    await exchange(service, organization, "grant", await jobToken(service, issuer, { sub })),
    /check sub$/,
  );
});

test("a refused token says nothing about the rule that it doesn't match", async (t) => {
  const stranger = { sub: "repo:evil@1/repo@2:ref:refs/heads/main", repository_owner_id: "1" };
  const { text } = await exchange(service, organization, "grant", await jobToken(service, issuer, stranger));
  for (const secret of ["octo-org", "repository_owner_id", "octo-repo", "Deploy", organization.name])
    t.false(text.includes(secret), secret);
});
