// The client of `dmlc lsp`, and the commands "Compile" and "Open report".
"use strict";

const path = require("path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const LANGUAGE = "dmlc-dml";
let client;

function settings() {
  const found = vscode.workspace.getConfiguration("dmlc");
  const command = found.get("command");
  return {
    command: Array.isArray(command) && command.length ? command : ["dmlc"],
    target: found.get("target"),
    include: found.get("include") || [],
  };
}

async function start() {
  const { command, target, include } = settings();
  const server = { command: command[0], args: [...command.slice(1), "lsp"] };
  client = new LanguageClient("dmlc", "dmlc", server, {
    documentSelector: [
      { scheme: "file", language: LANGUAGE },
      { scheme: "untitled", language: LANGUAGE },
    ],
    initializationOptions: { target, include },
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const said = `dmlc cannot be started as ${command.join(" ")}: ${error.message}. Install it by: pip install "dmlc[lsp]"`;
    vscode.window.showErrorMessage(said);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running) await running.stop();
}

// Runs dmlc as a task, so that its output and its exit code are seen; true if it succeeded.
async function run(name, words) {
  const { command } = settings();
  const shell = new vscode.ProcessExecution(command[0], [...command.slice(1), ...words]);
  const task = new vscode.Task({ type: "dmlc", name }, vscode.TaskScope.Workspace, name, "dmlc", shell);
  const running = await vscode.tasks.executeTask(task);
  return new Promise((resolve) => {
    const ended = vscode.tasks.onDidEndTaskProcess((event) => {
      if (event.execution === running) {
        ended.dispose();
        resolve(event.exitCode === 0);
      }
    });
  });
}

// The file of the program that is shown, saved; undefined where none is.
async function program() {
  const document = vscode.window.activeTextEditor && vscode.window.activeTextEditor.document;
  if (!document || document.languageId !== LANGUAGE || document.uri.scheme !== "file" || !(await document.save())) {
    vscode.window.showInformationMessage("Open a .dml program in a file first.");
    return undefined;
  }
  return document.uri.fsPath;
}

function options() {
  const { target, include } = settings();
  return ["--target", target, ...include.flatMap((folder) => ["--include", folder])];
}

async function compile() {
  const file = await program();
  if (file) await run("compile", ["compile", file, ...options()]);
}

async function openReport() {
  const file = await program();
  if (!file) return;
  const report = path.join(path.dirname(file), `${path.basename(file, ".dml")}.html`);
  if (await run("report", ["report", file, "-o", report, ...options()])) {
    await vscode.env.openExternal(vscode.Uri.file(report));
  }
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("dmlc.compile", compile),
    vscode.commands.registerCommand("dmlc.openReport", openReport),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("dmlc") && vscode.workspace.isTrusted) {
        await stop();
        await start();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(start),
  );
  if (vscode.workspace.isTrusted) await start();
}

module.exports = { activate, deactivate: stop };
