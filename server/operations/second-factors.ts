import { z } from "zod";
import { notFound, Problem } from "../../resources/http/problem.ts";
import { hasAtMost } from "../../resources/http/text.ts";
import { newTotpSecret, stepOfCode, totpUri } from "../credentials/totp.ts";
import { ACCOUNT } from "./account.ts";
import { onAccount } from "./operation.ts";
import { PASSKEYS_MAX, refusal } from "./problem-codes.ts";

const TOTP = `${ACCOUNT}/totp` as const;
const PASSKEYS = `${ACCOUNT}/passkeys` as const;

export const PASSKEY_NAME_MAX = 50;
const NAME_RULE = { error: `must be 1 to ${PASSKEY_NAME_MAX} characters long` };

const recoveryCodes = z.object({
  recovery_codes: z
    .array(z.string())
    .describe("Each signs in once instead of the second factor. Shown only once."),
});
const NEW_FACTOR = {
  needsRecentSignIn: true,
  output: recoveryCodes.optional(),
  events: ["member.second_factor_added"],
} as const;

/** A user who already has recovery codes keeps them. */
function codesToJson(codes: string[]) {
  return codes.length > 0 ? { recovery_codes: codes } : undefined;
}

export const startTotp = onAccount({
  at: `POST ${TOTP}`,
  summary: "Set up an authenticator app",
  needsRecentSignIn: true,
  description: "Returns the key for the app, which counts once a code confirms it.",
  output: z.object({
    secret: z.string().describe("The key, in base32."),
    uri: z.string().describe("The `otpauth` URI that a QR code for the app contains."),
  }),
  status: 201,
  refuses: ["totp_already_set_up"],
  async run({ storage, user: { id, username } }) {
    const secret = newTotpSecret();
    if (!(await storage.secondFactors.totp.start(id, secret))) throw refusal("totp_already_set_up");
    return { secret, uri: totpUri(secret, username) };
  },
});

export const confirmTotp = onAccount({
  ...NEW_FACTOR,
  at: `POST ${TOTP}/confirm`,
  summary: "Confirm the authenticator app",
  description: "Returns recovery codes unless the user already has some. Then the status is 204.",
  input: z.strictObject({ code: z.string().describe("The current code of the app.") }),
  refuses: ["not_found"],
  done: { "totp-added": "Authenticator app set up." },
  run: ({ storage, user: { id, actor }, signIn, input }) =>
    signIn.limitGuesses(async () => {
      const { totp } = storage.secondFactors;
      const secret = await totp.findPending(id);
      if (!secret) throw notFound("authenticator app");
      const step = stepOfCode(secret, input.code);
      if (step === undefined) throw wrongCode();
      const codes = await totp.confirm(secret, step, actor);
      if (!codes) throw notFound("authenticator app");
      await signIn.renew({ method: "totp" });
      return codesToJson(codes);
    }),
});

function wrongCode(): Problem {
  const detail = "Incorrect code. Enter the current code of your authenticator app.";
  const message = "must be the current code of the authenticator app";
  return new Problem(422, "invalid_code", detail, { errors: [{ field: "code", message }] });
}

export const removeTotp = onAccount({
  at: `DELETE ${TOTP}`,
  summary: "Remove the authenticator app",
  needsRecentSignIn: true,
  description: "Ends the other sessions that were confirmed with it.",
  refuses: ["not_found"],
  events: ["member.second_factor_removed"],
  done: { "totp-removed": "Authenticator app removed." },
  async run({ storage, user: { actor, sessionId }, signIn }) {
    if (!(await storage.secondFactors.totp.remove(actor, sessionId))) throw notFound("authenticator app");
    await signIn.forgetFactor("totp");
  },
});

export const addPasskey = onAccount({
  ...NEW_FACTOR,
  at: `POST ${PASSKEYS}`,
  summary: "Add a passkey",
  description:
    "Takes the response of an authenticator to the challenge on the page that adds a passkey. Returns recovery codes unless the user already has some. Then the status is 204.",
  input: z.strictObject({
    name: z
      .string(NAME_RULE)
      .trim()
      .refine((name) => name !== "" && hasAtMost(PASSKEY_NAME_MAX, name), NAME_RULE)
      .regex(/^[^\p{Cc}\p{Cf}]*$/u, { error: "must not contain control characters" }),
    passkey: z
      .string({ error: "must be the response of an authenticator" })
      .describe("The response, as JSON text (WebAuthn `RegistrationResponseJSON`)."),
  }),
  refuses: ["too_many_passkeys"],
  done: { "passkey-added": "Passkey added." },
  async run({ storage, user: { id, actor }, signIn, input }) {
    const { passkeys } = storage.secondFactors;
    if ((await passkeys.list(id)).length >= PASSKEYS_MAX) throw refusal("too_many_passkeys");
    const passkey = await signIn.verifyPasskey(input.passkey);
    if (!passkey) throw notAccepted();
    const codes = await passkeys.add({ ...passkey, name: input.name }, actor);
    if (!codes) throw notAccepted();
    await signIn.renew({ method: "passkey", synced: passkey.synced });
    return codesToJson(codes);
  },
});

function notAccepted(): Problem {
  const message = "must be a new passkey, created on this page within the last five minutes";
  return new Problem(422, "invalid_passkey", "The passkey wasn’t accepted. Try again.", {
    errors: [{ field: "passkey", message }],
  });
}

export const removePasskey = onAccount({
  at: `DELETE ${PASSKEYS}/{passkey_id}`,
  summary: "Remove a passkey",
  needsRecentSignIn: true,
  description: "Ends the sessions that began with it, and the other ones that were confirmed with a passkey.",
  refuses: ["only_way_in"],
  events: ["member.second_factor_removed"],
  done: { "passkey-removed": "Passkey removed." },
  async run({ storage, user: { actor, sessionId }, signIn, params }) {
    const failure = await storage.secondFactors.passkeys.remove(params.passkey_id, actor, sessionId);
    if (failure === "missing") throw notFound("passkey");
    if (failure) throw refusal(failure);
    await signIn.forgetFactor("passkey");
  },
});

export const replaceRecoveryCodes = onAccount({
  at: `POST ${ACCOUNT}/recovery-codes`,
  summary: "Create new recovery codes",
  needsRecentSignIn: true,
  description: "They replace all older ones.",
  output: recoveryCodes,
  refuses: ["second_factor_missing"],
  events: ["member.recovery_codes_replaced"],
  async run({ storage, user }) {
    const codes = await storage.secondFactors.recoveryCodes.replace(user.actor);
    if (codes) return { recovery_codes: codes };
    const detail = "Recovery codes replace a second factor. Set up an authenticator app or a passkey first.";
    throw new Problem(409, "second_factor_missing", detail);
  },
});
