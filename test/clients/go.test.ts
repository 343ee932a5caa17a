import { compileGo } from "../harness/clients/go.ts";
import { testFlows } from "../harness/clients/library-flows.ts";
import { runLibraryProgram } from "../harness/clients/library-program.ts";
import { debianVersion } from "../harness/clients/versions.ts";

testFlows(
  {
    name: "golang.org/x/oauth2",
    version: debianVersion("golang-golang-x-oauth2-dev"),
    flows: ["clientCredentials", "code", "refresh", "error"],
  },
  async (setup) => runLibraryProgram(await compileGo("test/clients/programs/x_oauth2.go"), [], setup),
);
