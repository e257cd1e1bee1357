#!/usr/bin/env node
// Starts the program of the package for this platform, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

// The exit code for wrong usage, as of the program.
const USAGE = 2;

const name = `qualitytrace-${process.platform}-${process.arch}`;

function program() {
  try {
    return require.resolve(`${name}/bin/qualitytrace`);
  } catch {
    const supported = Object.keys(require("../package.json").optionalDependencies);
    const hint = supported.includes(name)
      ? "install again without `--omit=optional` and without `--no-optional`"
      : `this platform is not supported; packages exist for ${supported.join(", ")}`;
    console.error(`error: the package \`${name}\` with the program is not installed: ${hint}`);
    process.exit(USAGE);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });

// The program decides how a signal ends it: this process waits for it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => child.kill(signal));
}

child.on("error", (error) => {
  console.error(`error: \`${child.spawnfile}\` cannot be started: ${error.message}`);
  process.exit(USAGE);
});

child.on("close", (code, signal) => {
  // As a shell reports the end by a signal.
  process.exit(signal === null ? code : 128 + constants.signals[signal]);
});
