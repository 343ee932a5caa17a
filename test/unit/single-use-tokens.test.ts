import test from "ava";
import { createSingleUseTokens } from "../../server/auth/single-use-tokens.ts";
import { advanceClock, MINUTE_MS } from "../harness/clock.ts";

const SECRET = "a secret of the server";
const tokens = createSingleUseTokens<{ user: string }>(SECRET, "test", MINUTE_MS);

test.serial("a token returns its data to its holder until it expires", (t) => {
  const token = tokens.create({ user: "ada" }, "browser");
  const { user, issuer, jti, expiresAt } = tokens.read(token, "browser") ?? {};
  t.deepEqual([user, issuer], ["ada", "test"]);
  t.true(expiresAt !== undefined && expiresAt > Date.now());
  t.not(jti, tokens.read(tokens.create({ user: "ada" }, "browser"), "browser")?.jti);
  advanceClock(MINUTE_MS + 1);
  t.is(tokens.read(token, "browser"), undefined);
});

test.serial("a token is nothing to another holder, issuer or server, nor if it was modified", (t) => {
  const token = tokens.create({ user: "ada" }, "browser");
  t.false(token.includes("ada"));
  t.is(tokens.read(token, "program"), undefined);
  t.is(createSingleUseTokens(SECRET, "other", MINUTE_MS).read(token, "browser"), undefined);
  t.is(createSingleUseTokens("another secret", "test", MINUTE_MS).read(token, "browser"), undefined);
  for (const changed of ["", token.slice(0, -1), token.replace("v1.", "v2.")])
    t.is(tokens.read(changed, "browser"), undefined, changed);
});
