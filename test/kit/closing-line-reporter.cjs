// Mocha's spec reporter plus one plain closing line, so that a machine can tell
// a run that passed from a run that executed nothing.
const Mocha = require("mocha");

module.exports = class ClosingLineReporter extends Mocha.reporters.Spec {
  epilogue() {
    super.epilogue();
    const { passes = 0, failures = 0, pending = 0 } = this.stats ?? {};
    process.stdout.write(`${passes} passed, ${failures} failed, ${pending} skipped\n`);
  }
};
