import test from "ava";
import { isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

type Audit = { data: { type: string; data: object }[] };

test("an owner requires DPoP and stops requiring it; both are audited", async (t) => {
  const { base, owner } = await createTeam(service);
  const path = `${base}/client/require-dpop`;
  const isRequired = async () =>
    (await owner.api.get<{ require_dpop: boolean }>(`${base}/client`)).body.require_dpop;
  t.false(await isRequired());
  for (const require_dpop of [true, true, false]) {
    const reply = await owner.api.send("PUT", path, { json: { require_dpop } });
    t.is(reply.status, 200);
    t.deepEqual(reply.body as unknown, { require_dpop });
    t.is(await isRequired(), require_dpop);
  }
  const type = "organization.dpop_requirement_changed";
  const { body } = await owner.api.get<Audit>(`${base}/audit?type=${type}`);
  t.deepEqual(
    body.data.map(({ data }) => data),
    [{ required: false }, { required: true }],
  );
});

const INVALID: [what: string, json: object, code: string][] = [
  ["no value", {}, "invalid_require_dpop"],
  ["a word", { require_dpop: "true" }, "invalid_require_dpop"],
  ["an unknown field", { require_dpop: true, more: 1 }, "unknown_field"],
];
for (const [what, json, code] of INVALID) {
  test(`${what} is rejected`, async (t) => {
    const { base, owner } = await createTeam(service);
    const reply = await owner.api.send("PUT", `${base}/client/require-dpop`, { json });
    t.is(reply.status, 422);
    t.is(reply.body.code, code, reply.text);
  });
}

test("only owners may change it; admins see it", async (t) => {
  const { base, admin, member, stranger } = await createTeam(service);
  for (const [user, status, code] of [
    [admin, 403, "role_required"],
    [member, 403, "role_required"],
    [stranger, 404, "not_found"],
  ] as const) {
    const reply = await user.api.send("PUT", `${base}/client/require-dpop`, { json: { require_dpop: true } });
    isProblem(t, reply, { status, code });
  }
  const { page } = await browserOf(service, admin).then(async ({ browser }) => ({
    page: await browser.open(`${service.url}${base}/client`),
  }));
  t.regex(page.text, /Only owners can change this\./);
  t.notRegex(page.text, /Require DPoP</);
});

test.serial("in a browser, the owner presses a button, after a recent sign-in", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(`${service.url}${base}/client`);
  const required = await browser.press(page, "Require DPoP");
  t.regex(required.text, /DPoP is now required\./);
  const optional = await browser.press(required, "Stop requiring DPoP");
  t.regex(optional.text, /DPoP is no longer required\./);
  advanceClock(11 * 60_000);
  const again = await browser.press(optional, "Require DPoP");
  t.truthy(again.html.querySelector("#password"), "the sign-in form");
});
