/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that tools execute or obey when they are next used in a directory that a sandbox could
 * write.
 *
 * A row is for a file on which a tool acts by itself or beside an everyday command: a directory is
 * opened or entered, a prompt is drawn, git commits, a package manager or an interpreter starts.
 * Not in the table:
 *
 * - Programs of the project, which the user starts knowingly: Makefile, justfile, the scripts of
 *   package.json, build files, tests, flake.nix, built or installed files (node_modules, .venv,
 *   target), and settings of linters, formatters and bundlers that are programs (eslint.config.js,
 *   conftest.py).
 * - Files that agents edit as ordinary work: CLAUDE.md, AGENTS.md, .cursorrules; and also
 *   package.json, pyproject.toml and pnpm-workspace.yaml, although a tool obeys parts of them.
 * - Names so ordinary that a tool's settings cannot be told from other files (global.json,
 *   config.toml).
 * - Programs that the file of a row names, except those that a package manager always keeps at the
 *   same place (.yarn/releases).
 *
 * A placeholder covers an absent path (cover_absent) only for tools that act without asking and
 * that work beside a placeholder: cargo, yarn, mise and others fail on a socket or an empty file of
 * that name, inside and outside.
 *
 * A path without a slash is looked for everywhere (SBX_MASK_DEPTH), so its name must mean nothing
 * else. docs/PROTECTED.md is printed from this table.
 */
#include "policy/lists/protected_path.h"

#include <string.h>

#include "base/cleanup.h"

#define ROW(group_, tool_, asks_, ...)                                                             \
	.group = SBX_PROTECTED_##group_, .tool = (tool_), .asks = SBX_PROTECTED_ASKS_##asks_,      \
	.paths = { __VA_ARGS__, NULL }

const struct sbx_protected_row sbx_protected_rows[] = {
	/* --- version control --- */
	{ ROW(VCS, "git", NO, ".git/hooks", ".git/config", ".git/config.worktree",
	      ".git/commondir"),
	  .cover_absent = true,
	  .acts = "any git command, and a prompt or editor that shows the state of a repository",
	  .source = "git-config(1), githooks(5), gitrepository-layout(5); "
		    "tests/system/test_protect.py does it" },
	{ ROW(VCS, "git", NO, "HEAD"), .cover_absent = true,
	  .acts = "any git command in a directory with HEAD, refs and objects, which is a "
		  "repository by itself",
	  .source = "gitrepository-layout(5); tests/system/test_protect.py does it" },
	{ ROW(VCS, "git", NO, ".gitmodules"), .cover_absent = true,
	  .acts = "git submodule: the file names the URLs of submodules",
	  .source = "gitmodules(5)" },
	{ ROW(VCS, "git", NO, ".gitconfig", ".config/git"),
	  .acts = "any git command, if the directory is a home or is copied to one",
	  .source = "git-config(1), FILES" },
	{ ROW(VCS, "Mercurial", NO, ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/requires",
	      ".hg/sharedpath"),
	  .acts = "any hg command: hooks, extensions, aliases; the last two files name another "
		  "place of an hgrc",
	  .source = "Mercurial, hg help config and tests/test-share-safe.t" },
	{ ROW(VCS, "Jujutsu", NO, ".jj/repo/config.toml", ".jj/repo/config-id",
	      ".jj/workspace-config.toml", ".jj/workspace-config-id"),
	  .acts = "any jj command before 0.38; a later jj takes the file over if it has no id file",
	  .source = "jj, docs/design/secure-config.md and CHANGELOG 0.38" },

	/* --- shells, in a directory that is a home or is copied to one --- */
	{ ROW(SHELLS, "bash, sh", NO, ".bashrc", ".bash_profile", ".bash_login", ".profile"),
	  .cover_absent = true, .acts = "a shell starts", .source = "bash(1), INVOCATION" },
	{ ROW(SHELLS, "bash", NO, ".bash_aliases", ".bash_logout", ".inputrc"),
	  .acts = "a shell starts (Debian's .bashrc reads .bash_aliases), a login shell ends, a "
		  "key is typed",
	  .source = "Debian, /etc/skel/.bashrc; bash(1), INVOCATION and READLINE" },
	{ ROW(SHELLS, "zsh", NO, ".zshenv", ".zprofile", ".zshrc", ".zlogin"), .cover_absent = true,
	  .acts = "a shell starts", .source = "zsh(1), STARTUP/SHUTDOWN FILES" },
	{ ROW(SHELLS, "zsh", NO, ".zlogout"), .acts = "a login shell ends",
	  .source = "zsh(1), STARTUP/SHUTDOWN FILES" },
	{ ROW(SHELLS, "fish", NO, ".config/fish"), .acts = "a shell starts",
	  .source = "fish, The fish language: Configuration files" },

	/* --- directories that change the programs of a shell in them --- */
	{ ROW(DIRECTORIES, "direnv", EACH, ".envrc"),
	  .acts = "the directory is entered; asks again for each content", .source = "direnv(1)" },
	{ ROW(DIRECTORIES, "direnv", NO, ".envrc.local"),
	  .acts = "the directory is entered, if an allowed .envrc has source_env_if_exists",
	  .source = "direnv-stdlib(1): the other .envrc is not checked by the security framework" },
	{ ROW(DIRECTORIES, "direnv", NO, ".direnvrc"),
	  .acts = "any .envrc is loaded, if the directory is a home",
	  .source = "direnv, end of stdlib.sh" },
	{ ROW(DIRECTORIES, "nix-direnv", NO, ".direnv/*.rc"),
	  .acts = "the directory is entered: the environment kept from last time is evaluated",
	  .source = "nix-direnv, direnvrc: _nix_import_env" },
	{ ROW(DIRECTORIES, "mise", ONCE, "mise.toml", ".mise.toml", "mise.local.toml",
	      ".mise.local.toml", "mise.*.toml", ".mise.*.toml", ".mise", "mise/config.toml",
	      "mise/conf.d", ".config/mise", ".config/mise.toml", ".config/mise.*.toml"),
	  .acts = "the directory is entered, or a tool of mise runs; asks once for a path; mise "
		  "run and mise install do not ask",
	  .source = "mise, Configuration, Paranoid and mise trust" },
	{ ROW(DIRECTORIES, "asdf, mise", NO, ".tool-versions"),
	  .acts = "a tool that they manage runs there: path:DIR names the directory of its "
		  "programs",
	  .source = "asdf, Configuration; mise, Configuration: Scopes" },

	/* --- editors --- */
	{ ROW(EDITORS, "VS Code and its kin", ONCE, ".vscode"),
	  .acts = "the directory is opened: tasks, settings that name programs, MCP servers; asks "
		  "once for a directory",
	  .source = "VS Code, Workspace Trust" },
	{ ROW(EDITORS, "VS Code and its kin", ONCE, "*.code-workspace"),
	  .acts = "the workspace is opened: as with .vscode",
	  .source = "VS Code, Workspace Trust" },
	{ ROW(EDITORS, "Dev Containers", UNKNOWN, ".devcontainer", ".devcontainer.json"),
	  .acts = "the directory's container is made or started: initializeCommand runs on the "
		  "host",
	  .source = "Development Container Specification, devcontainer.json reference" },
	{ ROW(EDITORS, "JetBrains IDEs", ONCE, ".idea"),
	  .acts = "the directory is opened; asks once for a directory",
	  .source = "IntelliJ IDEA, Project security" },
	{ ROW(EDITORS, "JetBrains IDEs", ONCE, ".run"), .acts = "a run configuration is started",
	  .source = "IntelliJ IDEA, Project security" },
	{ ROW(EDITORS, "Zed", ONCE, ".zed"),
	  .acts = "the directory is opened: language and MCP servers; asks once for a directory",
	  .source = "Zed, Trusted worktrees" },
	{ ROW(EDITORS, "Helix", EACH, ".helix"),
	  .acts = "a file there is opened; asks again for each content (versions before workspace "
		  "trust do not ask)",
	  .source = "Helix, Workspace trust" },
	{ ROW(EDITORS, "Neovim", EACH, ".nvim.lua", ".nvimrc"),
	  .acts = "nvim starts there, with 'exrc' set; asks again for each content",
	  .source = "exrc.nvim, README, on 'exrc' and vim.secure" },
	{ ROW(EDITORS, "Vim", NO, ".vimrc", ".exrc", ".gvimrc"),
	  .acts = "vim starts there, with 'exrc' set",
	  .source = "Vim, options.txt: 'exrc' and 'secure'" },
	{ ROW(EDITORS, "lazy.nvim", EACH, ".lazy.lua"),
	  .acts = "nvim starts there; asks again for each content",
	  .source = "lazy.nvim, lua/lazy/core/plugin.lua: find_local_spec" },
	{ ROW(EDITORS, "coc.nvim", UNKNOWN, ".vim/coc-settings.json"),
	  .acts = "a file there is opened: language servers",
	  .source = "coc.nvim, doc/coc.txt: coc-configuration" },
	{ ROW(EDITORS, "YouCompleteMe", ONCE, ".ycm_extra_conf.py"),
	  .acts = "a file there is opened; asks once for a path",
	  .source = "YouCompleteMe, README" },
	{ ROW(EDITORS, "Emacs", EACH, ".dir-locals.el", ".dir-locals-2.el"),
	  .acts = "a file there is opened; asks for variables that are not known to be safe",
	  .source = "Emacs manual, Safety of File Variables" },
	{ ROW(EDITORS, "Sublime Text with LSP", UNKNOWN, "*.sublime-project"),
	  .acts = "the project is opened: language servers",
	  .source = "LSP for Sublime Text, Per-project overrides" },
	{ ROW(EDITORS, "Haskell language server", UNKNOWN, "hie.yaml"),
	  .acts = "a file there is opened: a bios cradle is a program",
	  .source = "hie-bios, README" },

	/* --- agents --- */
	{ ROW(AGENTS, "Claude Code", ONCE, ".claude", ".mcp.json"),
	  .acts = "a session starts or a tool is used: hooks, MCP servers; asks once for a "
		  "directory and a server",
	  .source = "Claude Code, Settings and MCP (as others quote them)" },
	{ ROW(AGENTS, "Cursor", SET, ".cursor"),
	  .acts = "a session starts or a tool is used: hooks, MCP servers",
	  .source = "Cursor, Hooks: project hooks run in any trusted workspace" },
	{ ROW(AGENTS, "Gemini CLI", SET, ".gemini"),
	  .acts = "a session starts: MCP servers, hooks, commands",
	  .source = "Gemini CLI, Trusted Folders (off unless set, in older versions)" },
	{ ROW(AGENTS, "Qwen Code", SET, ".qwen"), .acts = "a session starts: MCP servers, hooks",
	  .source = "Qwen Code, Trusted Folders (off unless set)" },
	{ ROW(AGENTS, "Codex", ONCE, ".codex"),
	  .acts = "a session starts: MCP servers, hooks; asks once for a directory, and for hooks "
		  "again for each content",
	  .source = "Codex, MCP (as others quote it)" },
	{ ROW(AGENTS, "Windsurf", ONCE, ".windsurf"),
	  .acts = "Cascade acts: hooks; asks once for a directory",
	  .source = "Windsurf, Cascade Hooks" },
	{ ROW(AGENTS, "Devin", UNKNOWN, ".devin"),
	  .acts = "a session starts or a tool is used: hooks, MCP servers",
	  .source = "Devin, hooks.v1.json (as others quote it)" },
	{ ROW(AGENTS, "Continue", NO, ".continue"),
	  .acts = "a session starts or a tool is used: hooks, MCP servers",
	  .source = "Continue, MCP, and extensions/cli/src/hooks/hookConfig.ts" },
	{ ROW(AGENTS, "Kiro", UNKNOWN, ".kiro"),
	  .acts = "a session starts, a file is saved: MCP servers, hooks",
	  .source = "Kiro, Hooks, and MCP (as others quote it)" },
	{ ROW(AGENTS, "OpenCode", NO, ".opencode", "opencode.json", "opencode.jsonc"),
	  .acts = "OpenCode starts: it loads plugins and tools, installs packages, and starts MCP "
		  "servers",
	  .source = "OpenCode, Plugins" },
	{ ROW(AGENTS, "Crush", NO, ".crushrc", "crushrc", ".crush.json", "crush.json"),
	  .acts = "Crush starts: it runs crushrc as a shell script, and $(...) in JSON",
	  .source = "Crush, README and docs/config" },
	{ ROW(AGENTS, "aider", NO, ".aider.conf.yml"),
	  .acts = "aider starts, and after each of its edits: lint-cmd, test-cmd",
	  .source = "aider, YAML config file; aider/main.py" },
	{ ROW(AGENTS, "Amazon Q", UNKNOWN, ".amazonq"),
	  .acts = "a session starts: agents, MCP servers",
	  .source = "Amazon Q Developer CLI, Agent file locations" },
	{ ROW(AGENTS, "Roo Code", UNKNOWN, ".roo"), .acts = "the directory is opened: MCP servers",
	  .source = "Roo Code, Using MCP in Roo" },
	{ ROW(AGENTS, "Kilo Code", UNKNOWN, ".kilocode", ".kilo"),
	  .acts = "the directory is opened: MCP servers",
	  .source = "Kilo Code, MCP (as others quote it)" },
	{ ROW(AGENTS, "Cline", UNKNOWN, ".cline", ".clinerules/hooks"),
	  .acts = "a task starts, a tool is used: hooks",
	  .source = "Cline, .clinerules/hooks/README.md" },
	{ ROW(AGENTS, "GitHub Copilot", UNKNOWN, ".github/hooks", ".github/mcp.json"),
	  .acts = "a session of the CLI starts or a tool is used: hooks; MCP servers",
	  .source = "GitHub Copilot CLI, Hooks reference" },
	{ ROW(AGENTS, "Junie", UNKNOWN, ".junie"), .acts = "a session starts: MCP servers, hooks",
	  .source = "Junie, MCP configuration (as others quote it)" },
	{ ROW(AGENTS, "Factory Droid", UNKNOWN, ".factory"),
	  .acts = "a session starts or a tool is used: hooks, MCP servers",
	  .source = "Factory, Hooks guide (as others quote it)" },
	{ ROW(AGENTS, "Amp", ONCE, ".amp"),
	  .acts = "a session starts: MCP servers; asks once for a server",
	  .source = "Amp, manual, MCP (as others quote it)" },
	{ ROW(AGENTS, "Trae", UNKNOWN, ".trae"), .acts = "the directory is opened: MCP servers",
	  .source = "Trae, MCP servers (as others quote it)" },
	{ ROW(AGENTS, "Kimi Code", UNKNOWN, ".kimi-code"), .acts = "a session starts: MCP servers",
	  .source = "Kimi Code, MCP (as others quote it)" },
	{ ROW(AGENTS, "Pi", UNKNOWN, ".pi/extensions"), .acts = "Pi starts: it loads extensions",
	  .source = "Pi, Extensions (as others quote it)" },
	{ ROW(AGENTS, "Antigravity", UNKNOWN, ".agents/hooks.json"),
	  .acts = "a session starts or a tool is used: hooks",
	  .source = "Antigravity, hooks (as others quote it)" },

	/* --- hooks of a commit --- */
	{ ROW(HOOKS, "pre-commit", NO, ".pre-commit-config.yaml"),
	  .acts = "git commit, if pre-commit install was run",
	  .source = "pre-commit, pre_commit/constants.py and commands/hook_impl.py" },
	{ ROW(HOOKS, "Husky", NO, ".husky"),
	  .acts = "git commit and other git commands, if core.hooksPath names the directory",
	  .source = "husky, index.js" },
	{ ROW(HOOKS, "git", NO, ".githooks"),
	  .acts = "git commit and other git commands, if core.hooksPath names the directory",
	  .source = "git-config(1), core.hooksPath; the name is a convention" },
	{ ROW(HOOKS, "Lefthook", NO, "lefthook.*", ".lefthook.*", "lefthook-local.*",
	      ".lefthook-local.*", ".config/lefthook*", ".lefthook", ".lefthook-local"),
	  .acts = "git commit and other git commands, if lefthook install was run",
	  .source = "Lefthook, Configuration and source_dir" },

	/* --- package managers and toolchains --- */
	{ ROW(PACKAGES, "npm, pnpm", NO, ".npmrc"),
	  .acts = "any command: git, script-shell and node-options name programs and their "
		  "options; registry is where tokens are sent",
	  .source = "npm, npmrc and Config" },
	{ ROW(PACKAGES, "Yarn", NO, ".yarnrc.yml", ".yarn/releases", ".yarn/plugins"),
	  .acts = "any command: yarnPath is run in place of yarn, plugins are loaded first",
	  .source = "Yarn, .yarnrc.yml and Plugin Tutorial" },
	{ ROW(PACKAGES, "Yarn 1", NO, ".yarnrc"),
	  .acts = "any command: yarn-path is run in place of yarn", .source = "Yarn 1, .yarnrc" },
	{ ROW(PACKAGES, "pnpm", NO, ".pnpmfile.cjs", ".pnpmfile.mjs"), .acts = "pnpm install",
	  .source = "pnpm, .pnpmfile.mjs" },
	{ ROW(PACKAGES, "Bun", NO, "bunfig.toml"), .acts = "bun runs or tests anything: preload",
	  .source = "Bun, bunfig.toml: preload" },
	{ ROW(PACKAGES, "Cargo", NO, ".cargo/config", ".cargo/config.toml"),
	  .acts = "cargo, also from an editor: rustc-wrapper, runner, credential-provider, env",
	  .source = "The Cargo Book, Configuration" },
	{ ROW(PACKAGES, "rustup", NO, "rust-toolchain", "rust-toolchain.toml"),
	  .acts = "cargo, rustc and the like, also from an editor or a prompt: path names the "
		  "toolchain",
	  .source = "The rustup book, Overrides: path" },

	/* --- interpreters and debuggers --- */
	{ ROW(INTERPRETERS, "R", NO, ".Rprofile", ".Renviron", ".RData"),
	  .acts = "R starts there: .RData may hold a function .First, which R calls",
	  .source = "R, help(Startup)" },
	{ ROW(INTERPRETERS, "Octave", NO, ".octaverc"), .acts = "octave starts there",
	  .source = "GNU Octave, Startup Files" },
	{ ROW(INTERPRETERS, "irb", NO, ".irbrc", "irbrc", "_irbrc", "$irbrc"),
	  .acts = "irb starts there", .source = "irb, lib/irb/init.rb" },
	{ ROW(INTERPRETERS, "Pry", NO, ".pryrc"), .acts = "pry starts there",
	  .source = "pry, lib/pry/pry_class.rb" },
	{ ROW(INTERPRETERS, "GHCi", NO, ".ghci"), .acts = "ghci starts there",
	  .source = "GHC User's Guide, The .ghci file" },
	{ ROW(INTERPRETERS, "IEx", NO, ".iex.exs"), .acts = "iex starts there",
	  .source = "IEx, The .iex.exs file" },
	{ ROW(INTERPRETERS, "OCaml", NO, ".ocamlinit"), .acts = "ocaml starts there",
	  .source = "OCaml, toplevel: find_ocamlinit" },
	{ ROW(INTERPRETERS, "pdb", NO, ".pdbrc"), .acts = "Python's debugger starts there",
	  .source = "pydoc pdb" },
	{ ROW(INTERPRETERS, "Perl", NO, ".perldb"), .acts = "Perl's debugger starts there",
	  .source = "perl5db.pl" },
	{ ROW(INTERPRETERS, "GDB", NO, ".gdbinit"),
	  .acts = "gdb starts there, if its auto-load safe-path has the directory",
	  .source = "GDB 13, tried" },
	{ ROW(INTERPRETERS, "LLDB", NO, ".lldbinit"),
	  .acts = "lldb starts there, with target.load-cwd-lldbinit set",
	  .source = "lldb(1), CONFIGURATION FILES" },
};
#undef ROW

const size_t sbx_n_protected_rows = SBX_N_ELEMENTS(sbx_protected_rows);

const char *sbx_protected_asks_str(enum sbx_protected_asks asks)
{
	static const char *const names[] = {
		[SBX_PROTECTED_ASKS_NO] = "no",
		[SBX_PROTECTED_ASKS_ONCE] = "once",
		[SBX_PROTECTED_ASKS_EACH] = "each content",
		[SBX_PROTECTED_ASKS_SET] = "if configured",
		[SBX_PROTECTED_ASKS_UNKNOWN] = "not verified",
	};
	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_PROTECTED_ASKS, "every answer has a name");

	return names[asks];
}

const char *sbx_protected_group_str(enum sbx_protected_group group)
{
	static const char *const names[] = {
		[SBX_PROTECTED_VCS] = "Version control",
		[SBX_PROTECTED_SHELLS] = "Shells",
		[SBX_PROTECTED_DIRECTORIES] = "Environments of directories",
		[SBX_PROTECTED_EDITORS] = "Editors",
		[SBX_PROTECTED_AGENTS] = "Agents",
		[SBX_PROTECTED_HOOKS] = "Commit hooks",
		[SBX_PROTECTED_PACKAGES] = "Package managers and toolchains",
		[SBX_PROTECTED_INTERPRETERS] = "Interpreters and debuggers",
	};
	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_PROTECTED_GROUPS, "every group has a name");

	return names[group];
}

const struct sbx_protected_row *sbx_protected_row_of(const char *entry)
{
	for (size_t i = 0; i < sbx_n_protected_rows; i++)
		for (const char *const *path = sbx_protected_rows[i].paths; *path; path++)
			if (strcmp(*path, entry) == 0)
				return &sbx_protected_rows[i];
	return NULL;
}

bool sbx_protected_path_covers_absent(const char *entry)
{
	const struct sbx_protected_row *row = sbx_protected_row_of(entry);

	return row ? row->cover_absent : !sbx_protected_path_is_pattern(entry);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool sbx_protected_path_is_pattern(const char *entry)
{
	return strchr(last_part(entry), '*') != NULL;
}

/* A `*` first matches no byte. If the rest then does not match, the last `*` matches one byte more;
 * earlier ones need no second try. */
bool sbx_protected_path_matches(const char *entry, const char *name)
{
	const char *p = last_part(entry), *star = NULL, *from = NULL;

	while (*name)
		if (*p == '*') {
			star = ++p;
			from = name;
		} else if (*p == *name) {
			p++;
			name++;
		} else if (star) {
			p = star;
			name = ++from;
		} else {
			return false;
		}
	return p[strspn(p, "*")] == '\0';
}
