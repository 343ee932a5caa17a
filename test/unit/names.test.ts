import test from "ava";
import {
  emailAddress,
  nameSchema,
  validateName,
  validateNewUsername,
} from "../../server/credentials/names.ts";

const CHARACTERS = /must not contain control characters or invisible characters/;
const SERVICE = /must not contain “linkgate”, the name of this service, or resemble it/;

const UNREADABLE = "a\u0000b|Acme\nVerified|Acme\u202Eevil|Acme\u2066evil|Ac\u200Bme|Ac\u00ADme|Acme\u2028x";
const RESEMBLING = [
  "linkgate|Link Gate|linkgate support|linkg\u0430t\u0435|ｌｉｎｋｇａｔｅ|1inkg4te|linkqate|The lιnkgate team",
  "ʟɪɴᴋɢᴀᴛᴇ|ꓡinkgate|linkgat℮|liɲkgate|Ꞁinkgate|ㅣinkgate|丨inkgate|│inkgate|ΙΙΝΚGΑΤΕ|lıηkցαтє|𝓁𝒾𝓃𝓀ℊ𝒶𝓉ℯ",
  "Ⓛⓘⓝⓚⓖⓐⓣⓔ|l-i.n k_g a t e|lĩṉḵǧāţé|lïnkgàte|IinkgaTǝ",
].join("|");
const REFUSED: [message: RegExp, names: string][] = [
  [CHARACTERS, UNREADABLE],
  [/must be valid Unicode/, "Acme\uD83D"],
  [/more than 3 combining marks/, `A${"\u0316".repeat(4)}cme`],
  [SERVICE, RESEMBLING],
];

test("names of the service and its likes, and those that can't be read, are refused with their rule", (t) => {
  for (const [message, names] of REFUSED)
    for (const name of names.split("|"))
      t.regex(nameSchema.safeParse(name).error?.issues[0]?.message ?? "", message, name);
});

test("names that share letters with the service don't resemble it", (t) => {
  for (const name of ["Acme Links", "Linked Gate", "Link Data", "Линкгейт", "林克门", "Λινκ", "رابط"])
    t.is(validateName(name), undefined, name);
});

test("a name is stored without spaces at both ends, and composed", (t) => {
  t.is(nameSchema.parse("  Cafe\u0301 👩🏽 日本語 עברית "), "Caf\u00E9 👩🏽 日本語 עברית");
});

test("usernames of the service, of the audit log and without a single form can't be chosen", (t) => {
  for (const username of ["linkgate", "linkgate-support", "Linkgat3", "1inkgate", "Operator"])
    t.regex(validateNewUsername(username) ?? "", /reserved/, username);
  const impossible = ["ab", "someone\n", "a b", "!", "x".repeat(65)];
  // Their forms in which usernames are unique are too long.
  const long = ["\ufdfa".repeat(4), "\ufb00".repeat(40), "\u0130".repeat(40)];
  for (const username of [...impossible, ...long]) t.truthy(validateNewUsername(username), username);
  t.is(validateNewUsername("ada.lovelace@example.com"), undefined);
});

test("an email address is one mailbox with a domain name", (t) => {
  const lists = ["a@b.example, c@d.example", "ada@mail.example\r\nBcc: eve@mail.example"];
  for (const text of ["", "ada", "ada@example", "“ada”@mail.example", ...lists])
    t.false(emailAddress.safeParse(text).success, text);
  t.is(emailAddress.parse("ada@mail.example"), "ada@mail.example");
});
