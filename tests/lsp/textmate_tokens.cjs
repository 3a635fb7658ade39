// Tokens of programs by the TextMate grammar: `node textmate_tokens.cjs EXTENSION FILE...` prints one JSON array a file,
// of rows [line, start, end, scopes] in UTF-16 from 0.
"use strict";

const fs = require("fs");
const path = require("path");

const [extension, ...files] = process.argv.slice(2);
const modules = path.join(extension, "node_modules");
const textmate = require(path.join(modules, "vscode-textmate"));
const oniguruma = require(path.join(modules, "vscode-oniguruma"));

async function main() {
  const wasm = fs.readFileSync(path.join(modules, "vscode-oniguruma", "release", "onig.wasm"));
  await oniguruma.loadWASM(wasm);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => {
      const file = path.join(extension, "syntaxes", "dml.tmLanguage.json");
      return textmate.parseRawGrammar(fs.readFileSync(file, "utf8"), file);
    },
  });
  const grammar = await registry.loadGrammar("source.dmlc-dml");
  for (const file of files) {
    const rows = [];
    let stack = textmate.INITIAL;
    fs.readFileSync(file, "utf8")
      .split("\n")
      .forEach((line, number) => {
        const found = grammar.tokenizeLine(line, stack);
        stack = found.ruleStack;
        for (const token of found.tokens) rows.push([number, token.startIndex, token.endIndex, token.scopes]);
      });
    process.stdout.write(JSON.stringify(rows) + "\n");
  }
}

main();
