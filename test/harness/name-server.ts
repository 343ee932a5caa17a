import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv4 } from "node:net";

/** A DNS server on loopback, with names that the test defines. */
export type NameServer = {
  /** Its IP address and port, as `Resolver.setServers` takes them. */
  address: string;
  /** Sets what a name resolves to. Each list answers one query per record type; the last list answers all later queries. */
  resolve(name: string, ...answers: string[][]): void;
  /** Returns the record types queried for a name, in order: `A` or `AAAA`. */
  asked(name: string): string[];
  close(): Promise<void>;
};

const HEADER_BYTES = 12;
const KINDS: Record<number, string> = { 1: "A", 28: "AAAA" };
const ANSWER = 0x8180;
const NO_SUCH_NAME = 0x8183;

/** Starts a DNS server (RFC 1035 §4). The caller closes it. */
export async function startNameServer(): Promise<NameServer> {
  const names = new Map<string, string[][]>();
  const questions: { name: string; kind: string }[] = [];
  const asked = (name: string) =>
    questions.filter((question) => question.name === name).map(({ kind }) => kind);

  const socket = createSocket("udp4", (query, peer) => {
    const { name, kind, end } = readQuestion(query);
    const answers = names.get(name);
    const turn = asked(name).filter((other) => other === kind).length;
    questions.push({ name, kind });
    const addresses = answers?.[Math.min(turn, answers.length - 1)] ?? [];
    const records = addresses.filter((address) => isIPv4(address) === (kind === "A")).map(toRecord);
    const header = Buffer.alloc(HEADER_BYTES);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(answers ? ANSWER : NO_SUCH_NAME, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    socket.send(
      Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...records]),
      peer.port,
      peer.address,
    );
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");

  return {
    address: `127.0.0.1:${socket.address().port}`,
    resolve: (name, ...answers) => void names.set(name, answers),
    asked,
    async close() {
      socket.close();
      await once(socket, "close");
    },
  };
}

/** Parses the first question, and returns the offset of its end. */
function readQuestion(query: Buffer) {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += length + 1;
  }
  return {
    name: labels.join(".").toLowerCase(),
    kind: KINDS[query.readUInt16BE(at + 1)] ?? "other",
    end: at + 5,
  };
}

/** Encodes an answer to the question of the message: a pointer to its name, type, class, TTL and address. */
function toRecord(address: string): Buffer {
  const bytes = isIPv4(address) ? address.split(".").map(Number) : ipv6Bytes(address);
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(0xc000 + HEADER_BYTES, 0);
  head.writeUInt16BE(bytes.length === 4 ? 1 : 28, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(bytes.length, 10);
  return Buffer.concat([head, Buffer.from(bytes)]);
}

/** Encodes an IP address as bytes. */
function ipv6Bytes(address: string): number[] {
  const [front = [], back = []] = address.split("::").map((part) => part.split(":").filter(Boolean));
  const groups = [...front, ...Array(8 - front.length - back.length).fill("0"), ...back];
  return groups.flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
