import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";
import { closeAfterTests } from "./closing.ts";

const HEADER_BYTES = 12;
const KINDS: Record<number, string> = { 1: "A", 16: "TXT", 28: "AAAA" };
const ANSWER = 0x8180;
const NO_SUCH_NAME = 0x8183;

const words = (...values: number[]) => Buffer.from(values.flatMap((value) => [value >> 8, value & 0xff]));

const encode = (name: string) =>
  name.replaceAll(/([^.]+)\.?/g, (_, label: string) => String.fromCharCode(label.length) + label);

/** Starts a DNS server (RFC 1035 §4) on loopback, with names that the test defines. */
export async function startNameServer() {
  const names = new Map<string, string[][]>();
  const texts = new Map<string, string[]>();
  const questions: { name: string; kind: string }[] = [];
  const kindsOf = (name: string) =>
    questions.filter((question) => question.name === name).map(({ kind }) => kind);

  const socket = createSocket("udp4", (query, peer) => {
    const end = query.indexOf(0, HEADER_BYTES);
    const name = query.toString("latin1", HEADER_BYTES, end).toLowerCase();
    const kind = KINDS[query.readUInt16BE(end + 1)] ?? "other";
    const answers = names.get(name);
    const turn = kindsOf(name).filter((other) => other === kind).length;
    questions.push({ name, kind });
    const addresses = answers?.[Math.min(turn, answers.length - 1)] ?? [];
    const records =
      kind === "TXT"
        ? (texts.get(name) ?? []).map(toText)
        : addresses.filter((address) => isIPv4(address) === (kind === "A")).map(toAddress);
    const exists = answers !== undefined || texts.has(name);
    const counts = words(exists ? ANSWER : NO_SUCH_NAME, 1, records.length, 0, 0);
    const question = query.subarray(HEADER_BYTES, end + 5);
    const answer = Buffer.concat([query.subarray(0, 2), counts, question, ...records]);
    socket.send(answer, peer.port, peer.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");

  return {
    /** Its IP address and port, as `Resolver.setServers` takes them. */
    address: `127.0.0.1:${socket.address().port}`,
    /** Sets what a name resolves to. Each list answers one query per record type; the last list answers all later queries. */
    resolve: (name: string, ...answers: string[][]) => void names.set(encode(name), answers),
    /** Sets the TXT records of a name, of up to 255 bytes each. */
    setTexts: (name: string, ...values: string[]) => void texts.set(encode(name), values),
    /** Returns the record types queried for a name, in order: `A`, `AAAA` or `TXT`. */
    asked: (name: string) => kindsOf(encode(name)),
    close: closeAfterTests(() => once(socket.close(), "close")),
  };
}

function toAddress(address: string): Buffer {
  return toRecord(isIPv4(address) ? 1 : 28, Buffer.from(ipaddr.parse(address).toByteArray()));
}

function toText(text: string): Buffer {
  return toRecord(16, Buffer.from(String.fromCharCode(text.length) + text, "latin1"));
}

function toRecord(type: number, data: Buffer): Buffer {
  return Buffer.concat([words(0xc000 + HEADER_BYTES, type, 1, 0, 0, data.length), data]);
}
