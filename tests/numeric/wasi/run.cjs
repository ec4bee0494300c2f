// Run a WebAssembly program of WASI in Node, with its folder as the current one.
const { readFileSync } = require("node:fs");
const { WASI } = require("node:wasi");

const system = new WASI({ version: "preview1", preopens: { ".": "." }, returnOnExit: true });
WebAssembly.instantiate(readFileSync(process.argv[2]), system.getImportObject()).then(
  ({ instance }) => {
    process.exitCode = system.start(instance);
  },
);
