package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"pgfsm/internal/visible"
)

// hiddenText replaces hidden values.
const hiddenText = "…"

// printable returns the command line or URL of an entry as one printable line, without possible secrets. Variables and headers follow, with their references
// but without literal values.
func (m *member) printable() string {
	n := m.value
	var parts []string
	if n.get("command") != nil {
		word := n.str("command")
		if !visible.PlainWord(word) {
			word = strconv.Quote(word)
		}
		parts = append(parts, word)
		for _, arg := range n.membersOf("args") {
			parts = append(parts, strconv.Quote(arg.value.text))
		}
	}
	if n.get("url") != nil {
		parts = append(parts, shownURL(n.str("url")))
	}
	for _, key := range []string{"env", "headers"} {
		var pairs []string
		for _, pair := range n.membersOf(key) {
			pairs = append(pairs, shownName(pair.key)+"="+shownValue(pair.value))
		}
		if len(pairs) > 0 {
			parts = append(parts, "("+key+": "+strings.Join(pairs, ", ")+")")
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return visible.Text(strings.Join(parts, " "))
}

// describeChange describes a changed entry. The previous entry is known only by its digest.
func (m *member) describeChange() string {
	now := m.printable()
	if warning := m.warning(); warning != "" {
		now += "; it " + warning
	}
	return now + "; what differs may be values of env or headers, or keys that are not used here"
}

// shownName quotes a name that is not plain.
func shownName(name string) string {
	if visible.PlainWord(name) {
		return name
	}
	return quote(name)
}

// shownValue shows the references of a value, which are no secrets, and hides all other text.
func shownValue(n *node) string {
	text, refused := ourReferences(n.text)
	pieces, broken := splitReferences(text)
	if n.kind != isText || refused != (fault{}) || broken != (fault{}) || len(pieces) == 0 {
		return hiddenText
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.from == "" {
			b.WriteString(hiddenText)
		} else {
			b.WriteString("${" + p.from + ":" + p.text + "}")
		}
	}
	return b.String()
}

func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return "a URL that cannot be read"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.RawQuery != "" {
		return shown.String() + "?" + hiddenText
	}
	return shown.String()
}

// Environment variables, in capitals, that can make a program run other code than its command line names: preloaded code, search paths of
// programs and modules, and sources of package runners.
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
	codePrefixes = []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_", "NPM_CONFIG_", "YARN_", "PNPM_", "PIP_", "UV_", "CORECLR_",
		"COR_", "COMPLUS_", "LUA_INIT_", "LUA_PATH_", "LUA_CPATH_", "CARGO_"}
)

// canRunCode reports whether a variable can make a program run other code. Programs read some variables in any letter case, so it ignores case.
func canRunCode(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(codeVariables, name) ||
		slices.ContainsFunc(codePrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// warning returns a printable text that names the variables of an entry that can run other code; "" if there are none.
func (m *member) warning() string {
	var names []string
	for _, pair := range m.value.membersOf("env") {
		if canRunCode(pair.key) {
			names = append(names, shownName(pair.key))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return visible.Text("sets " + strings.Join(names, ", ") + ", which can run other code")
}
