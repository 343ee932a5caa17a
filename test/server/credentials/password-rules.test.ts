import test from "ava";
import { isBreached } from "../../../server/credentials/breached-passwords/is-breached.ts";
import { validatePassword } from "../../../server/credentials/password-rules.ts";

const ADA = { username: "ada.lovelace", organizations: ["Acme Corporation", "Zürich Works"] };

test("passwords with fewer than 8 or more than 128 code points are rejected", (t) => {
  for (const password of ["", "1234567", "🔑🔑🔑🔑", "🔑".repeat(7), "x".repeat(129)]) {
    t.regex(validatePassword(password, ADA) ?? "", /8 to 128 characters/, password);
  }
});

test("there are no composition rules", (t) => {
  for (const password of [
    "onlylowercaseletters",
    "ONLYCAPITALLETTERS",
    "8275619340",
    "        spaces        ",
    "correct horse battery staple",
    "wwwwwwwwwwwwwwwq",
  ]) {
    t.is(validatePassword(password, ADA), undefined, password);
  }
});

const NAMES: Record<string, string[]> = {
  "the name of this service": [
    "linkgate",
    "LinkGate",
    "linkgate123",
    "L1nkg4te2026!",
    "etagknil",
    "linkgatelinkgate",
  ],
  "your username": ["ada.lovelace", "Ada.Lovelace1815", "adalovelace!", "Lovelace2026!", "l0vel4ce#1"],
  "the name of your organization": ["Acme2026!", "acmeacme", "AcmeCorporation1", "corporation", "Zürich2026"],
};

for (const [name, passwords] of Object.entries(NAMES)) {
  test(`a password made of ${name} is rejected in any case and with a few other characters`, (t) => {
    for (const password of passwords) {
      t.is(validatePassword(password, ADA), `The password must not be made of ${name}.`, password);
    }
  });
}

test("a password may contain a name among enough other characters", (t) => {
  for (const password of ["acme needs 3 more horses", "ada likes long evenings", "linkgate-7391-pv"]) {
    t.is(validatePassword(password, ADA), undefined, password);
  }
});

test("breached passwords are rejected in any case", (t) => {
  for (const password of [
    "ｉｌｏｖｅｙｏｕ",
    "password",
    "PASSWORD",
    "Password1!",
    "12345678",
    "qwertyuiop",
    "sunshine",
    "letmein123",
  ]) {
    t.regex(validatePassword(password, ADA) ?? "", /appears in lists of breached passwords/, password);
  }
});

test("breached passwords with a few digits, symbols or lookalikes are rejected", (t) => {
  for (const password of ["Qwerty123!", "Summer2026!", "Dr4gon#99", "$unsh1ne", "Pr1nce55!", "monkey.2026"]) {
    t.regex(validatePassword(password, ADA) ?? "", /differs from a breached one/, password);
  }
});

test("fewer than 1 in 1,000 other texts are mistaken for a breached password", (t) => {
  const count = 100_000;
  const mistaken = Array.from({ length: count }, (_, index) => `not a password ${index}`).filter(isBreached);
  t.true(mistaken.length < count / 1000, `${mistaken.length}`);
});
