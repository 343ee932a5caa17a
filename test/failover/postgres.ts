import type { Program } from "../harness/program.ts";
import { createMachineFolder, documentedCommand, documentedUrl, hostOf, type Machine } from "./documented.ts";
import { poll, run, startDatabaseMachine, startEtcd, startHaproxy, startPooler } from "./programs.ts";

type Member = { name: Machine; role: string; state: string };
type Name = "db1" | "db2";

export type Postgres = Awaited<ReturnType<typeof startPostgres>>;

/** Starts the machines of the document, without linkgate. */
export async function startPostgres() {
  const machines = { db1: startDatabaseMachine("db1"), db2: startDatabaseMachine("db2") };
  const folder = createMachineFolder("application");
  const others: Program[] = [startEtcd("db3", createMachineFolder("db3"))];

  async function findMachine(role: string) {
    for (const name of Object.keys(machines) as Name[]) {
      const options = { signal: AbortSignal.timeout(2000) };
      const response = await fetch(`http://${hostOf(name)}:8008/cluster`, options).catch(() => undefined);
      if (!response?.ok) continue;
      const { members } = (await response.json()) as { members: Member[] };
      const member = members.find((one) => one.role === role && one.state === "running");
      if (member) return machines[member.name as Name];
    }
    return undefined;
  }

  const outputs = () =>
    Object.values(machines)
      .map(({ output }) => output())
      .join("\n");
  const primary = () => poll("a primary", () => findMachine("leader"), outputs);
  const standby = () => poll("a synchronous standby", () => findMachine("sync_standby"), outputs);

  async function close(): Promise<void> {
    await Promise.all(Object.values(machines).map((one) => one.signal("SIGKILL")));
    for (const program of others) program.kill("SIGKILL");
    await Promise.all(others.map(({ ended }) => ended));
  }

  try {
    await standby();
    await run(documentedCommand("psql", folder).replace(hostOf("db1"), hostOf((await primary()).name)));
    const haproxy = startHaproxy("/etc/haproxy/haproxy.cfg", folder);
    others.push(haproxy, await startPooler(folder));
    await haproxy.says(/is DOWN/, "stderr"); // then it has checked both
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url: documentedUrl("postgres"),
    primary,
    standby,
    close,
    async switchOver(): Promise<void> {
      const command = documentedCommand(
        "patronictl -c /etc/patroni/config.yml switchover",
        machines.db1.folder,
      );
      if (!/Successfully switched over/.test(await run(command))) throw new Error("no switchover");
    },
    restart: () =>
      run(documentedCommand("patronictl -c /etc/patroni/config.yml restart", machines.db1.folder)),
  };
}
