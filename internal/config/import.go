package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// A ClientServer is one server of a client's file, checked like a server of [Load].
type ClientServer struct {
	Name string `json:"name"` // the name in the file; safe to print only if Refused is empty
	// printable: the entry without literal values of variables and headers; empty if it is refused.
	Runs string `json:"runs,omitzero"`
	// printable: names variables that can make it run other code; mostly empty.
	Warning string `json:"warning,omitzero"`
	// printable: the reason not to import the server; empty if it is usable.
	Refused string `json:"refused,omitzero"`

	entry *node
}

// ReadClient returns the servers of a client's own file, in its order. It starts none of them. The
// error is of type [Errors].
func ReadClient(name string, text []byte) ([]ClientServer, error) {
	c, err := readClient(name, text)
	if err != nil {
		return nil, err
	}

	var out []ClientServer
	usable := 0
	for i := range c.servers {
		m := &c.servers[i]
		s := ClientServer{Name: m.key}
		disabled := m.value.textOf("disabled") == "true"
		c.faults = nil
		switch entry := c.convertEntry(m); {
		case entry == nil:
			s.Refused = c.joinProblems()
		case disabled:
			s.Refused = "it is disabled in this file"
		case usable == policy.MaxServers:
			s.Refused = fmt.Sprintf("at most %d servers are accepted", policy.MaxServers)
		default:
			usable++
			s.entry, s.Runs, s.Warning = entry, visible.JSON([]byte(withoutValues(entry).exampleText())),
				codeWarning(entry)
		}
		out = append(out, s)
	}

	return out, nil
}

// joinProblems writes the faults in one line.
func (f *file) joinProblems() string {
	var problems []string
	for _, e := range f.faults {
		problems = append(problems, e.Problem)
	}
	return visible.Text(strings.Join(problems, "; "))
}

// withoutValues returns an entry without literal text in variables, headers and the query of its
// URL, which may be secret.
func withoutValues(entry *node) *node {
	copied := entry.copyAt(entry.at)
	for _, key := range []string{"env", "headers"} {
		for _, m := range copied.membersOf(key) {
			pieces, _ := splitReferences(m.value.text)
			m.value.text = ""
			for _, piece := range pieces {
				if piece.source == "" {
					m.value.text += hiddenText
				} else {
					m.value.text += "${" + piece.source + ":" + piece.text + "}"
				}
			}
		}
	}
	if url := copied.get("url"); url != nil {
		if base, _, found := strings.Cut(url.text, "?"); found {
			url.text = base + "?" + hiddenText
		}
	}
	return copied
}

// Imported writes a configuration with the usable servers of a client's file. source is the
// file's path, relative to the folder of the configuration; relative paths of commands count from
// the client's file.
func Imported(source string, servers []ClientServer) []byte {
	var b strings.Builder
	b.WriteString(`# yaml-language-server: $schema=pgfsm.schema.json
# The configuration of pgfsm. What a key means: the schema, or "pgfsm init" in another folder, which writes a file with
# every key in it. Check this file: pgfsm config check -c pgfsm.yaml
# Only you may be able to write this file: it starts commands.
version: 1

`)

	fmt.Fprintf(&b, "# The servers of %s, as init read them. Replace literal secrets by references, as in \"${env:NAME}\".\nservers:\n", visible.Text(source))
	for _, s := range servers {
		if s.entry == nil {
			continue
		}
		if s.Warning != "" {
			fmt.Fprintf(&b, "  # It %s.\n", s.Warning)
		}
		entry := s.entry.copyAt(s.entry.at)
		if command := entry.get("command"); command != nil && strings.Contains(command.text, "/") &&
			!filepath.IsAbs(command.text) {
			command.text = filepath.ToSlash(filepath.Join(filepath.Dir(source), command.text))
			if !strings.Contains(command.text, "/") {
				command.text = "./" + command.text // without "./", exec would search PATH
			}
		}
		fmt.Fprintf(&b, "  %s: %s\n", appendQuote(nil, s.Name), entry.spacedJSON())
	}

	b.WriteString(`
# The tools that may be called at all: {"server": ["tool", …]}. pgfsm refuses all others; {} allows none.
allowlist: allowlist.json

# auto: routes first, of which there are none yet; then the model that planner.llm or LLM_BASE_URL and LLM_MODEL name.
planner: {mode: auto}
`)

	return []byte(b.String())
}

// Environment variables, in capitals, that can make a program run other code than its command line
// names: preloaded code, search paths of programs and modules, and sources of package runners.
var (
	codeVariables = strings.Fields(`PATH PATHEXT COMSPEC ENV BASH_ENV SHELL SHELLOPTS BASHOPTS IFS PS4 PROMPT_COMMAND ZDOTDIR
		NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE ELECTRON_RUN_AS_NODE BUN_OPTIONS BUN_CONFIG_REGISTRY
		PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONUSERBASE PYTHONINSPECT PYTHONBREAKPOINT PYTHONWARNINGS
		PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE PHPRC PHP_INI_SCAN_DIR
		JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS JAVA_HOME CLASSPATH MAVEN_OPTS GRADLE_OPTS
		DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS DOTNET_ROOT LUA_INIT LUA_PATH LUA_CPATH R_PROFILE R_PROFILE_USER
		JULIA_LOAD_PATH JULIA_DEPOT_PATH ERL_FLAGS ERL_AFLAGS ERL_ZFLAGS GOFLAGS GOPROXY RUSTC_WRAPPER MAKEFLAGS
		GCONV_PATH OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES DOCKER_HOST EDITOR VISUAL PAGER MANPAGER BROWSER
		LESSOPEN LESSCLOSE SSH_ASKPASS SUDO_ASKPASS HOME XDG_CONFIG_HOME USERPROFILE APPDATA`)
	codePrefixes = []string{
		"LD_", "DYLD_", "BASH_FUNC_", "GIT_", "NPM_CONFIG_", "YARN_", "PNPM_", "PIP_", "UV_", "CORECLR_",
		"COR_", "COMPLUS_", "LUA_INIT_", "LUA_PATH_", "LUA_CPATH_", "CARGO_",
	}
)

// canRunCode reports whether a variable can make a program run other code. Programs read some
// variables in any letter case, so it ignores case.
func canRunCode(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(codeVariables, name) ||
		slices.ContainsFunc(codePrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// codeWarning returns a printable text that names the variables of an entry that can run other
// code; "" if there are none.
func codeWarning(entry *node) string {
	var names []string
	for _, pair := range entry.membersOf("env") {
		if canRunCode(pair.key) {
			names = append(names, pair.key)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "sets " + strings.Join(names, ", ") + ", which can run other code"
}
